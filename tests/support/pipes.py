"""A pipe under a path, as a shell makes one of ``<(command)``."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def pipe_with(content: bytes) -> Iterator[Path]:
    """Yield the path of a pipe that holds ``content`` and ends behind it; a second reader finds it empty."""
    reading, writing = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as file:
            file.write(content)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield Path(f"/dev/fd/{reading}")
    finally:
        os.close(reading)
        thread.join()
