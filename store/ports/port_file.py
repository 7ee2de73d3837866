"""The file in which a process tells its starter the address that it listens on.

It is there last: a starter that waits for it finds a process that serves, that stops when it is asked to, and that has
written all lines of its start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cortado.errors import InvalidArgument
from cortado.store.files.regular_files import create_anew


@contextmanager
def there_last(path: Path | None, address: str) -> Iterator[None]:
    """``path`` holds ``address`` once the block has ended; None stands for no file. Raises InvalidArgument if it cannot
    be written: before the block if that shows by then."""
    if path is None:
        yield
        return
    temporary = path.with_name(path.name + ".new")
    try:
        with os.fdopen(create_anew(temporary), "w", encoding="utf-8") as file:
            file.write(f"{address}\n")
            # No secret, and for others to read: a client that may connect can find the port anyway.
            os.fchmod(file.fileno(), 0o644)
    except OSError as error:
        raise _refused(path, error) from error
    yield
    try:
        temporary.replace(path)
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> InvalidArgument:
    return InvalidArgument("port-file", f"cannot be written: {error.strerror}", str(path))
