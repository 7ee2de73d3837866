"""The decorator that the forwarders of the synchronous face share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cortado.store.client.public_faces import public_face

C = TypeVar("C")


def forwards(core: type) -> Callable[[type[C]], type[C]]:
    """Mark the synchronous face of ``core``: its documentation holds here, too, and ``help`` shows it.

    It is a public face, as ``core`` is: errors do not show the client's frames.
    """

    def documented(face: type[C]) -> type[C]:
        for name, member in vars(face).items():
            if not name.startswith("_") and member.__doc__ is None:
                member.__doc__ = getattr(getattr(core, name, None), "__doc__", None)
        return public_face(face)

    return documented
