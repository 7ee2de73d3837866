"""The command line, ``cortado``: everything that the API does, for people and for scripts.

One module per group of commands in ``commands/``; a command parses what it was given, calls the Python client, and
renders the answer. What all of them share stands beside: the global options (``session.py``), rendering
(``render.py``), errors and exit codes (``failures.py``), keys and bytes as text (``parse.py``).
"""

from __future__ import annotations

import os
import sys

# gRPC's core writes lines of its own, a server's for each handshake that fails, and anybody can fail at that; what ends
# a command is said in one line of ours. It looks at this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# The poller that gRPC had before its event engine: who waits for a message polls for it, where the engine hands it over
# between three threads. A round trip costs either side 41 us of processor so, and not 65 (docs/performance.md).
# For servers alone: a client that connects on its own thread is not polled for, and its handshakes stand still.
if sys.argv[1:2] == ["server"]:
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")

INTERRUPTED = 130


def main() -> None:
    """The ``cortado`` script. Ctrl-C while it is being loaded is as quiet as later."""
    try:
        from cortado.store.cli.app import main as run_main
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run_main()


__all__ = ["main"]
