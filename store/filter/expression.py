"""The syntax tree of a filter: the text as written, before it is bound to a schema.

Every node knows its ``position``, the character of the text at which it begins (from 0). Comparing nodes ignores it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID


class Operator(StrEnum):
    """How two values are compared."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def mirrored(self) -> Operator:
        """The operator that says the same with both sides exchanged."""
        return _MIRRORED[self]


_MIRRORED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


class LiteralKind(StrEnum):
    """The kind of a literal, by its spelling."""

    NULL = "null"
    BOOLEAN = "a boolean"
    NUMBER = "a number"
    DOUBLE = "a double"
    STRING = "a string"
    BYTES = "bytes"
    UUID = "a uuid"
    DATE = "a date"
    TIME = "a time"
    TIMESTAMP = "a timestamp"
    LOCAL_TIMESTAMP = "a local timestamp"


LiteralValue: TypeAlias = bool | int | float | Decimal | str | bytes | UUID | None


@dataclass(frozen=True, slots=True)
class Path:
    """A field, or a field within records: ``names`` from the root down."""

    names: tuple[str, ...]
    position: int = field(default=0, compare=False)

    @property
    def dotted(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value: a number as Decimal, a date as days since 1970, a time or timestamp as nanoseconds (of the day, since
    1970)."""

    kind: LiteralKind
    value: LiteralValue
    position: int = field(default=0, compare=False)


Operand: TypeAlias = Path | Literal


@dataclass(frozen=True, slots=True)
class Compare:
    """``left operator right``."""

    operator: Operator
    left: Operand
    right: Operand
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class In:
    """``operand in (items)``."""

    operand: Path
    items: tuple[Literal, ...]
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``operand starts with prefix``."""

    operand: Path
    prefix: Literal
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand is null``: true or false, never unknown."""

    operand: Operand
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """An operand that stands by itself: a boolean field, ``true``, ``false`` or ``null``."""

    operand: Operand
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """``not item``."""

    item: Expression
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """All ``items``, two or more."""

    items: tuple[Expression, ...]
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """Any of ``items``, two or more."""

    items: tuple[Expression, ...]
    position: int = field(default=0, compare=False)


Expression: TypeAlias = Compare | In | StartsWith | IsNull | Truth | Not | And | Or
