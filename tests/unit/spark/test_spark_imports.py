"""The connector, and the parts of the client that it uses, load without any package of a server."""

from __future__ import annotations

import subprocess
import sys

SERVERS = (
    "cryptography",
    "fsspec",
    "google_crc32c",
    "llvmlite",
    "lmdb",
    "numba",
    "prometheus_client",
    "pysyncobj",
    "uvloop",
)
LOADING = f"""
import importlib, pkgutil, sys
for name in {SERVERS!r}:
    sys.modules[name] = None
for package in ("pyspark_cortado", "cortado.store.client", "cortado.store.aggregate", "cortado.store.filter"):
    for each in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
        importlib.import_module(each.name)
"""


def test_nothing_of_a_server_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
