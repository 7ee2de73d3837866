"""The root of the error tree: what every error can say of itself, and how it travels between processes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(eq=False)
class CortadoError(Exception):
    """Root of the tree. ``code`` is the canonical gRPC code's name, ``reason`` the stable machine-readable name."""

    code: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = "CORTADO_ERROR"

    def __str__(self) -> str:
        return self.message()

    def message(self) -> str:
        """One sentence for a person: what was wrong, with the value and the limit."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.fields().items() if value not in (None, ""))
        return f"{self.reason}: {shown}" if shown else self.reason

    def fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark carries errors between processes; a dataclass exception does not pickle by its positional args.
        return (_of_fields, (type(self), self.fields()))


def _of_fields(kind: type[CortadoError], fields: dict[str, Any]) -> CortadoError:
    return kind(**fields)
