"""The place in the documents of a nested column's value, worked out only when an error must name it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cortado.errors import InvalidDocument
from cortado.schema.columnar.column import Offsets


@dataclass(frozen=True, slots=True)
class Origin:
    """The way from a document to the values of one column; without a parent, the documents themselves.

    ``step`` is the field's name, ``rows`` the places of the values among the parent's (None: all of them in order),
    ``offsets`` the parent's ranges if it is an array or a map. Times finer than their type are truncated if it
    ``truncates``, and refused if not.
    """

    parent: Origin | None = None
    step: str = ""
    rows: npt.NDArray[np.intp] | None = None
    offsets: Offsets | None = None
    truncates: bool = False

    def field(self, name: str) -> Origin:
        return Origin(self, name, truncates=self.truncates)

    def where(self, rows: npt.NDArray[np.intp]) -> Origin:
        """Return the origin of the values at ``rows``."""
        return Origin(self, "", rows, truncates=self.truncates)

    def items(self, offsets: Offsets) -> Origin:
        return Origin(self, "", None, offsets, self.truncates)

    def path(self) -> str:
        """Return the path of all these values; ``[]`` stands for any item."""
        if self.parent is None:
            return ""
        path = self.parent.path()
        if self.offsets is not None:
            return f"{path}[]"
        return f"{path}.{self.step}" if path and self.step else path + self.step

    def error(self, value: int, problem: str, shown: str = "") -> InvalidDocument:
        """Return the error about one value, with its path and the number of its document."""
        path, row = self._locate(value)
        return InvalidDocument(path, problem, shown, row=row)

    def _locate(self, value: int) -> tuple[str, int]:
        if self.parent is None:
            return "", value
        step = self.step
        if self.offsets is not None:
            at = int(np.searchsorted(self.offsets, value, "right")) - 1
            step = f"[{value - int(self.offsets[at])}]"
            value = at
        elif self.rows is not None:
            value = int(self.rows[value])
        path, row = self.parent._locate(value)
        return f"{path}.{step}" if path and self.step else path + step, row
