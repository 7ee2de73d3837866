"""What needs more than a client's installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cortado.errors import Unsupported


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Around the import of a module that needs an extra. Raises Unsupported where a package behind it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cortado"):
            raise
        raise Unsupported(f"{what} without {error.name}", f"pip install 'cortado[{extra}]'") from None
