"""What needs more than a client's installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cortado.errors import Unsupported


@contextmanager
def server_extra(what: str) -> Iterator[None]:
    """Around the import of a module of the server's. Raises Unsupported where a package behind it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cortado"):
            raise
        raise Unsupported(f"{what} without {error.name}", "pip install 'cortado[server]'") from None
