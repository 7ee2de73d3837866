"""Members of a JSON object that may have been changed by hand: each is of its type and within its bounds, or is named.

Manifests and checkpoints may come from any source, and their values become paths that are written and numbers for
arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NoReturn, TypeVar

from cortado.errors import InvalidArgument
from cortado.schema.json_text import shown

WHOLE_MAX: Final = (1 << 63) - 1

_Entry = TypeVar("_Entry")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Fields:
    """The members of an object at ``path``. Raises InvalidArgument naming the path of a wrong member."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise InvalidArgument(path, "must be an object", type(value).__name__)
        self._value: Mapping[str, Any] = value
        self._path = path

    def text(self, name: str) -> str:
        found = self._get(name)
        if not isinstance(found, str):
            self.refuse(name, "text")
        try:
            found.encode()
        except UnicodeEncodeError:
            self.refuse(name, "Unicode, without halves of characters")
        return found

    def flag(self, name: str) -> bool:
        found = self._get(name)
        return found if isinstance(found, bool) else self.refuse(name, "true or false")

    def whole(self, name: str, least: int = 0) -> int:
        found = self._get(name)
        if type(found) is not int or not least <= found <= WHOLE_MAX:
            self.refuse(name, f"a whole number from {least} to {WHOLE_MAX}")
        return found

    def wholes(self, name: str, count: int) -> tuple[int, ...]:
        found = self._get(name)
        if not isinstance(found, list) or len(found) != count:
            self.refuse(name, f"an array of {count} whole numbers")
        return tuple(Fields({name: each}, self._path).whole(name) for each in found)

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._get(name)
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            self.refuse(name, "an array of texts")
        return tuple(Fields({name: each}, self._path).text(name) for each in found)

    def maybe(self, name: str, read: Callable[[str], _Entry]) -> _Entry | None:
        return None if self._get(name) is None else read(name)

    def each(self, name: str, read: Callable[[Fields], _Entry]) -> tuple[_Entry, ...]:
        found = self._get(name)
        if not isinstance(found, list):
            self.refuse(name, "an array")
        return tuple(read(Fields(each, f"{self._path}.{name}[{place}]")) for place, each in enumerate(found))

    def inner(self, name: str) -> Fields:
        """Return the object that a member is."""
        return Fields(self._get(name), f"{self._path}.{name}")

    def path(self, name: str) -> str:
        """Return a path that stays below the directory, of names that print."""
        found = self.text(name)
        parts = PurePosixPath(found).parts
        if not parts or found != "/".join(parts) or parts[0] == "/" or ".." in parts or not found.isprintable():
            self.refuse(name, "a path below its directory")
        return found

    def sha256(self, name: str) -> str:
        found = self.text(name)
        if _SHA256.fullmatch(found) is None:
            self.refuse(name, "64 hexadecimal digits")
        return found

    def refuse(self, name: str, wanted: str) -> NoReturn:
        found = shown(self._value[name], 80) if name in self._value else "nothing"
        raise InvalidArgument(f"{self._path}.{name}", f"must be {wanted}", found)

    def _get(self, name: str) -> Any:
        return self._value.get(name)
