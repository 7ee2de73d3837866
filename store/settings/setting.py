"""One setting: everything that flags, files, the environment, refusals and the reference say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.settings.kinds import SIZE, Kind

HIDDEN: Final = "(set, and not shown)"
# A URL may hold a password.
_USERINFO: Final = re.compile(r"(://)[^/\s@]+@")


@dataclass(frozen=True, slots=True)
class Setting:
    """``name`` is the flag without its dashes and the key in a file; a dot stands before the key in a file's table.

    - ``default`` is the value if no place sets one; if it is None, ``default_text`` says what happens.
    - ``low`` and ``high`` bound a number, both included; ``bound`` says further conditions in words.
    - ``flag_name`` is the flag if that has another name than the setting.
    - ``is_secret``: a value is never shown, only that there is one.
    - ``is_for_tests``: for rehearsals, and for programs that start a server; in no list for operators.
    """

    name: str
    kind: Kind
    default: Any
    meaning: str
    group: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    bound: str = ""
    metavar: str = ""
    default_text: str = ""
    flag_name: str = ""
    is_secret: bool = False
    is_for_tests: bool = False

    @property
    def field(self) -> str:
        """As an identifier: ``data_dir``, ``limit_writes_max``."""
        return self.name.replace("-", "_").replace(".", "_")

    @property
    def flag(self) -> str:
        return self.flag_name or f"--{self.name}"

    def variable(self, prefix: str) -> str:
        return f"{prefix}{self.field.upper()}"

    def read(self, place: str, written: Any) -> Any:
        """Return the value written at ``place``. Raises InvalidArgument naming the place and the bound."""
        value = self.kind.read(place, written)
        self.check(place, value)
        return value

    def check(self, place: str, value: Any) -> None:
        """Raise InvalidArgument if a number is out of its bounds."""
        if value is None or self.low is None or self.high is None:
            return
        if not self.low <= value <= self.high:
            raise InvalidArgument(place, f"must be {self.between}", self.show(value))

    @property
    def between(self) -> str:
        """``between 10 and 10000``, for a number that has bounds."""
        if self.low is None or self.high is None:
            return ""
        return f"between {self.kind.show(self.low)} and {self.kind.show(self.high)}"

    def show(self, value: Any) -> str:
        """Return a value for people; for a missing one, the default's text."""
        text = self.text(value)
        if text is None:
            return f"({self.default_text})" if self.default_text else "(none)"
        return text

    def text(self, value: Any) -> str | None:
        """Return a value as it may be given again; None without one."""
        if value is None or value in ("", ()):
            return None
        return HIDDEN if self.is_secret else _USERINFO.sub(r"\1***@", self.kind.show(value))

    @property
    def bound_text(self) -> str:
        """All bounds for people."""
        parts = [self.between, self.bound]
        return "; ".join(part for part in parts if part)

    @property
    def unit_text(self) -> str:
        return self.unit or ("bytes" if self.kind is SIZE else "")
