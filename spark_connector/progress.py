"""How far a stream may go: known from memory, whenever Spark asks."""

from __future__ import annotations

import threading
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.clients import open_client
from pyspark_cortado.options import Connection

_RESOLVED_MS: Final = 100


class Progress:
    """How far all changes of a range are known, by a watch of its own, in a thread."""

    def __init__(self, connection: Connection, bounds: tuple[Any, Any], after: Timestamp) -> None:
        self.known = after
        self._connection = connection
        self._bounds = bounds
        self._error: Exception | None = None
        self._is_over = threading.Event()
        threading.Thread(target=self._run, name="cortado-progress", daemon=True).start()

    def newest(self) -> Timestamp:
        """Raises what ended the watch."""
        if self._error is not None:
            raise self._error
        return self.known

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        lower, upper = self._bounds
        try:
            with open_client(self._connection) as client:
                table = client.table(self._connection.table)
                with table.progress(lower, upper, after=self.known, resolved_ms=_RESOLVED_MS) as events:
                    for event in events:
                        if self._is_over.is_set():
                            return
                        self.known = max(self.known, event.ts)
        except CortadoError as error:
            self._error = error
