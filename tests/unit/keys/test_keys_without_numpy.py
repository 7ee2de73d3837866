"""The client encodes and dumps keys without numpy."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["numpy"] = None
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.keys.keyspace import row_key
from cortado.store.keys.dump import dump
from cortado.store.clock.hlc import Clock
from cortado.store.clock.text import parse_time
print(dump(row_key(0x30007, [KeyPart("name", KeyType.STRING)], ["UA"])))
"""


def test_single_keys_and_the_clock_need_no_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ('row 3.7 ("UA")\n', "")
