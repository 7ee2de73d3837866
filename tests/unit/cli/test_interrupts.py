"""Ctrl-C is raised at a point at which no lock is left behind."""

from __future__ import annotations

import subprocess
import sys

# The place that is put off is that of another thread here, which stands in it.
CODE = """
import signal, sys, threading, time
from cortado.store.cli.interrupts import interrupt_between_locks

interrupt_between_locks()
condition = threading.Condition()
condition.acquire()
# Not before it is known that the first one has raised nothing: no thread may take the alarm until then.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
entering = threading.Thread(target=condition.__enter__, daemon=True)
entering.start()
while (frame := sys._current_frames().get(entering.ident)) is None or frame.f_code.co_name != "__enter__":
    time.sleep(0.001)
signal.getsignal(signal.SIGINT)(signal.SIGINT, frame)
print("put off")
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    time.sleep(60)
except KeyboardInterrupt:
    print("raised")
"""


def test_it_is_put_off_within_a_condition_and_raised_behind_it() -> None:
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert (ended.stdout.split("\n"), ended.stderr) == (["put off", "raised", ""], "")
