"""Finds the operation that a path names. Paths are matched undecoded: after decoding, a separator could not be told
from a slash within a key.

A path without variables is looked up in a table; patterns with variables are tried in order, those with the same first
segment only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

from starlette.routing import compile_path

T = TypeVar("T")


class Routes(Generic[T]):
    """``resources`` by their paths as Starlette writes them; of two that match, the earlier one wins."""

    def __init__(self, resources: Mapping[str, T]) -> None:
        self._fixed = {path: each for path, each in resources.items() if "{" not in path}
        self._variable: dict[str, list[tuple[re.Pattern[str], T]]] = {}
        for path, each in resources.items():
            if path not in self._fixed:
                pattern, _, _ = compile_path(path)
                self._variable.setdefault(_first_segment(path), []).append((pattern, each))

    def find(self, path: str) -> tuple[T, dict[str, str]] | None:
        """Return the resource and the parts of the path that it names, as they were sent; None if no path matches."""
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed, {}
        for pattern, each in self._variable.get(_first_segment(path), ()):
            found = pattern.match(path)
            if found is not None:
                return each, found.groupdict()
        return None


def _first_segment(path: str) -> str:
    return path[1:].partition("/")[0]
