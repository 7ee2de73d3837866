"""The option ``query``: one SELECT over one table, as the options that it stands for.

::

    SELECT origin, count(*) AS n FROM nyc.flights WHERE month = 1 GROUP BY origin LIMIT 10
           columns, or aggregates     table             filter           groupBy      limit

``WHERE`` is in the filter language. All of it is left to the node; other clauses of SQL are refused by their word, and
``sql()`` runs them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from cortado.errors import InvalidArgument, Unsupported

_TOKEN: Final = re.compile(
    r"""(?P<SPACE>\s+)|(?P<TEXT>'(?:[^']|'')*')|(?P<QUOTED>"[^"]*"|`[^`]*`)|(?P<WORD>[A-Za-z_][A-Za-z0-9_]*)|(?P<OTHER>.)""",
    re.VERBOSE | re.DOTALL,
)
_ELSEWHERE: Final = frozenset(
    {"with", "distinct", "join", "union", "except", "intersect", "minus", "having", "order", "offset", "over", "window"}
    | {"lateral", "pivot", "unpivot", "tablesample", "case", "cast", "sort", "distribute", "cluster", "qualify"}
)
"""Words of SQL that a read of one table has nothing for."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    position: int
    depth: int
    """How many parentheses it stands in."""
    is_word: bool

    @property
    def word(self) -> str:
        return self.text.lower() if self.is_word else ""


def options_of(query: str) -> dict[str, str]:
    """Return ``table``, and those of ``columns``, ``filter``, ``aggregate``, ``groupBy`` and ``limit`` that the query
    gives.

    Raises InvalidArgument with the position and the token that was expected there, Unsupported naming the clause.
    """
    clauses = _Clauses(query)
    found = {"table": clauses.table()}
    found |= {name: text for name, text in (("filter", clauses.where), ("limit", clauses.limit)) if text is not None}
    items = clauses.items()
    aggregates = [item for item in items if _is_aggregate(item)]
    if aggregates or clauses.group_by is not None:
        found["aggregate"], groups = _grouped(query, items, clauses.group_by)
        return found | groups
    if items != ["*"]:
        found["columns"] = ",".join(_column(item) for item in items)
    return found


def _grouped(query: str, items: list[str], group_by: str | None) -> tuple[str, dict[str, str]]:
    """Return the aggregates and the groups. If groups stand first in the query, the columns keep its order, as the
    result has it."""
    count = sum(not _is_aggregate(item) for item in items)
    groups = items[:count]
    if any(_is_aggregate(item) for item in groups):
        raise InvalidArgument("option query", "must name the columns that it groups by before the aggregates", query)
    wanted = [each.strip() for each in (group_by or "").split(",") if each.strip()]
    fields = [re.split(r"\s+as\s+", each, flags=re.IGNORECASE)[0] for each in groups]
    if [each.replace("`", "") for each in fields] != [each.replace("`", "") for each in wanted]:
        names = ", ".join(wanted) or "nothing"
        problem = f"must SELECT the columns of GROUP BY ({names}), in its order, and aggregates"
        raise InvalidArgument("option query", problem, ", ".join(fields) or "none")
    if len(items) == count:
        raise InvalidArgument(
            "option query", "must SELECT an aggregate, such as count(*), since it has GROUP BY", query
        )
    return ", ".join(items[count:]), {"groupBy": ", ".join(groups)} if groups else {}


def _is_aggregate(item: str) -> bool:
    return "(" in item


def _column(item: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*|`[^`,]+`", item):
        raise Unsupported(f"{item} in the option query", "name fields and aggregates there, and use sql() for the rest")
    return item.strip("`")


class _Clauses:
    """The query cut at its clauses, each as it is written."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens = _tokens(query)
        for before, token in zip([None, *self._tokens], self._tokens, strict=False):
            _refuse(token, "" if before is None else before.word)
        if not self._tokens or self._tokens[0].word != "select":
            self._expected("SELECT", 0, self._tokens[0].text if self._tokens else "the end")
        self._select = self._between("select", "from")
        self._from = self._between("from", "where", "group", "limit")
        self.where = self._optional("where", "group", "limit")
        self.group_by = self._group_by()
        self.limit = self._optional("limit")

    def table(self) -> str:
        """Return the one table, as ``database.table``."""
        if "," in self._from:
            raise Unsupported("FROM with several tables in the option query", "use sql()")
        name = self._from.replace("`", "")
        if not re.fullmatch(r"\w+\.\w+", name):
            self._expected("one table, as database.table", self._query.index(self._from), self._from or "the end")
        return name

    def items(self) -> list[str]:
        """Return the texts between the commas of SELECT."""
        found, depth, start = [], 0, 0
        for place, letter in enumerate(self._select):
            depth += (letter == "(") - (letter == ")")
            if letter == "," and not depth:
                found.append(self._select[start:place].strip())
                start = place + 1
        found.append(self._select[start:].strip())
        if not all(found):
            self._expected(
                "a field or an aggregate", self._query.index(self._select or "from"), "nothing between commas"
            )
        return found

    def _group_by(self) -> str | None:
        text = self._optional("group", "limit")
        if text is None:
            return None
        if text[:2].lower() != "by":
            self._expected("BY behind GROUP", self._place("group"), text[:20] or "the end")
        return text[2:].strip()

    def _optional(self, word: str, *ends: str) -> str | None:
        return self._between(word, *ends) if self._place(word) >= 0 else None

    def _between(self, word: str, *ends: str) -> str:
        """Return the text behind ``word``, up to the first of ``ends`` or the end."""
        start = self._place(word)
        if start < 0:
            self._expected(word.upper(), len(self._query), "the end")
        first = start + len(word)
        places = [place for place in map(self._place, ends) if place > start]
        text = self._query[first : min(places, default=len(self._query))].strip()
        if not text:
            self._expected(f"something behind {word.upper()}", first, "nothing")
        return text

    def _place(self, word: str) -> int:
        return next((each.position for each in self._tokens if each.word == word and not each.depth), -1)

    def _expected(self, what: str, position: int, found: str) -> NoReturn:
        raise InvalidArgument("option query", f"expected {what}, found {found}, at character {position}")


def _refuse(token: _Token, before: str) -> None:
    """``before`` is the word that stands before it."""
    if token.word in _ELSEWHERE and (before, token.word) != ("starts", "with"):
        raise Unsupported(f"{token.text.upper()} in the option query", "use sql()")
    if token.word == "select" and token.position and (before or token.depth):
        raise Unsupported("a query within the option query", "use sql()")


def _tokens(query: str) -> list[_Token]:
    found, depth = [], 0
    for match in _TOKEN.finditer(query):
        text = match.group()
        depth -= text == ")"
        if match.lastgroup != "SPACE":
            found.append(_Token(text, match.start(), depth, match.lastgroup == "WORD"))
        depth += text == "("
    return found
