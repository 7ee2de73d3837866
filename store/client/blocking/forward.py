"""What the forwarders of the synchronous face have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C")


def forwards(core: type) -> Callable[[type[C]], type[C]]:
    """Marks the synchronous face of ``core``: what it documents holds here, too, and ``help`` shows it."""

    def documented(face: type[C]) -> type[C]:
        for name, member in vars(face).items():
            if not name.startswith("_") and member.__doc__ is None:
                member.__doc__ = getattr(getattr(core, name, None), "__doc__", None)
        return face

    return documented
