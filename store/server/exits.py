"""The exit codes of a server that cannot go on, from ``sysexits.h``.

==  ==================================================================================================================
69  the cluster that it was to join could not be reached, or has no leader now: start it again later
70  a defect while the log was applied
74  the disk failed under a write
75  the port for clients was not served any more, and could not be served again
78  the cluster that it was to join refused it (not announced, another data directory, another cluster)
==  ==================================================================================================================
"""

from __future__ import annotations

from typing import Final

from cortado.errors import CortadoError

EXIT_UNAVAILABLE: Final = 69
EXIT_SOFTWARE: Final = 70
EXIT_IO: Final = 74
EXIT_PORT: Final = 75
EXIT_CONFIG: Final = 78


class ServerEnded(Exception):
    """A server did not start, or ended without a request to stop: its error, and the exit code of the process."""

    def __init__(self, error: CortadoError, exit_code: int) -> None:
        super().__init__(error, exit_code)
        self.error = error
        self.exit_code = exit_code


class StartRefused(ServerEnded):
    """It did not start."""


class PortLost(ServerEnded):
    """It ended in order, since no client could reach it."""

    def __init__(self, error: CortadoError) -> None:
        super().__init__(error, EXIT_PORT)
