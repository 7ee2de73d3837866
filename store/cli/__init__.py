"""The command line, ``cortado``: everything that the API does, for users and for scripts.

One module per group of commands in ``commands/``; a command parses its arguments, calls the Python client, and
renders the answer. The parts that all commands share stand beside: the global options (``session.py``), rendering
(``render.py``), errors and exit codes (``failures.py``), keys and bytes as text (``parse.py``).
"""

from __future__ import annotations

import os
import sys

# gRPC's core writes log lines of its own, a server's for each failed handshake, which any caller can cause. A command
# reports its end in one line of ours. gRPC reads the variable when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# The poller that gRPC had before its event engine: the thread that waits for a message polls for it, while the engine
# hands it over between three threads. A round trip then costs either side 41 us of processor, not 65
# (docs/performance-journal.md). For servers alone: a client that connects on its own thread gets no polling, and its
# handshakes stand still.
if sys.argv[1:2] == ["server"]:
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")

INTERRUPTED = 130


def main() -> None:
    """Run the ``cortado`` script. Ctrl-C while it is being loaded is as quiet as later."""
    try:
        from cortado.store.cli.app import main as run_main
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run_main()


__all__ = ["main"]
