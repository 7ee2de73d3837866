"""Aggregates as text: ``count(*) as n, sum(price) as total`` by ``shop, address.city as city``.

::

    aggregates = aggregate { "," aggregate }
    aggregate  = "count" "(" ( "*" | field ) ")" [ "as" name ]
               | ( "sum" | "min" | "max" | "avg" ) "(" field ")" [ "as" name ]
    group_by   = group { "," group }
    group      = field [ "as" name ]
    field      = name { "." name }
    name       = letter { letter | digit | "_" } | '"' characters '"' | "`" characters "`"

The five words and ``as`` may have any case. Without a name a result is called as it is written: ``sum(price)``,
``address.city``. The server checks that the fields exist and have a type that fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn

from cortado.errors import InvalidArgument
from cortado.store.client.arguments import text, texts

TEXT_BYTES_MAX: Final = 16 << 10

_TOKEN: Final = re.compile(
    r"""(?P<SPACE>\s+)
    |(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<QUOTED>"[^"]+"|`[^`]+`)
    |(?P<SYMBOL>[(),.*])""",
    re.VERBOSE,
)


class AggregateKind(StrEnum):
    """The functions that turn a group's rows into one value."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: its ``kind``, the path of its ``field`` (empty for ``count(*)``), the ``name`` of its result."""

    kind: AggregateKind
    field: str
    name: str


@dataclass(frozen=True, slots=True)
class GroupField:
    """A field that groups rows by its values, and the ``name`` of its column in the result."""

    field: str
    name: str


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """The parsed query. ``names`` are the result's columns: first the groups', then the aggregates'."""

    aggregates: tuple[Aggregate, ...]
    group_by: tuple[GroupField, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The result's columns, in order."""
        return (*(each.name for each in self.group_by), *(each.name for each in self.aggregates))


def parse_aggregates(aggregates: str, group_by: str | Sequence[str] | None = None) -> AggregateQuery:
    """Read both texts; ``group_by`` may also be a list of such texts. Raises InvalidArgument with the position (from 0)
    and the token that was expected there, or with the name that two columns would share."""
    asked = _Parser(text(aggregates, "aggregates"), "aggregates").aggregates()
    if group_by is None or group_by == "":
        groups: Iterable[GroupField] = ()
    elif isinstance(group_by, str):
        groups = _Parser(text(group_by, "group_by"), "group_by").groups()
    else:
        parsed = [_Parser(each, f"group_by[{i}]").groups() for i, each in enumerate(texts(group_by, "group_by"))]
        groups = [group for each in parsed for group in each]
    query = AggregateQuery(tuple(asked), tuple(groups))
    for place, name in enumerate(query.names):
        if name in query.names[:place]:
            raise InvalidArgument(
                "aggregates", "two columns of the result have one name: give one another, by 'as'", name
            )
    return query


@dataclass(frozen=True, slots=True)
class _Token:
    """``kind`` is NAME, QUOTED, SYMBOL or END; ``text`` is without quotes."""

    kind: str
    text: str
    raw: str
    position: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "NAME" else ""

    def __str__(self) -> str:
        return self.raw or "the end"


class _Parser:
    def __init__(self, source: str, field: str) -> None:
        self._field = field
        size_bytes = len(source.encode())
        if size_bytes > TEXT_BYTES_MAX:
            raise InvalidArgument(field, f"must have at most {TEXT_BYTES_MAX} bytes", f"{size_bytes} bytes")
        self._tokens = self._tokenize(source)
        self._next = 0

    def aggregates(self) -> list[Aggregate]:
        found = [self._aggregate()]
        while self._accept(","):
            found.append(self._aggregate())
        self._end("',', as or the end")
        return found

    def groups(self) -> list[GroupField]:
        found = [self._group()]
        while self._accept(","):
            found.append(self._group())
        self._end("',', '.', as or the end")
        return found

    def _aggregate(self) -> Aggregate:
        token = self._peek()
        if token.word not in AggregateKind.__members__.values():
            self._expected(f"{', '.join(AggregateKind)}")
        kind = AggregateKind(self._take().word)
        self._symbol("(")
        if kind is AggregateKind.COUNT and self._accept("*"):
            field = ""
        else:
            field = self._path("'*' or a field" if kind is AggregateKind.COUNT else "a field")
        self._symbol(")")
        return Aggregate(kind, field, self._name(f"{kind}({field or '*'})"))

    def _group(self) -> GroupField:
        field = self._path("a field")
        return GroupField(field, self._name(field))

    def _path(self, wanted: str) -> str:
        names = [self._one_name(wanted)]
        while self._accept("."):
            names.append(self._one_name("a name"))
        return ".".join(names)

    def _name(self, default: str) -> str:
        if self._peek().word != "as":
            return default
        self._take()
        return self._one_name("a name")

    def _one_name(self, wanted: str) -> str:
        if self._peek().kind not in ("NAME", "QUOTED"):
            self._expected(wanted)
        return self._take().text

    # --- tokens

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept(self, symbol: str) -> bool:
        token = self._peek()
        found = token.kind == "SYMBOL" and token.text == symbol
        self._next += found
        return found

    def _symbol(self, symbol: str) -> None:
        if not self._accept(symbol):
            self._expected(f"'{symbol}'")

    def _end(self, wanted: str) -> None:
        if self._peek().kind != "END":
            self._expected(wanted)

    def _expected(self, wanted: str) -> NoReturn:
        token = self._peek()
        self._fail(token.position, f"expected {wanted}, found {token}")

    def _fail(self, position: int, problem: str) -> NoReturn:
        raise InvalidArgument(self._field, f"{problem}, at character {position}")

    def _tokenize(self, source: str) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while position < len(source):
            match = _TOKEN.match(source, position)
            if match is None:
                self._fail(position, f"unexpected character {source[position]!r}")
            raw, kind = match.group(), match.lastgroup or ""
            if kind != "SPACE":
                tokens.append(_Token(kind, raw[1:-1] if kind == "QUOTED" else raw, raw[:40], position))
            position = match.end()
        return [*tokens, _Token("END", "", "", len(source))]
