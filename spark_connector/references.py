"""The tables of Cortado in a Spark query, and the read of each mention.

::

    SELECT f.origin, count(*) FROM nyc.flights f JOIN nyc.planes p ON f.tailnum = p.tailnum AND p.year > 1990
    WHERE f.month = 1 GROUP BY f.origin
                                   │  parsed by sqlglot, which says where in the text each name stands
    nyc.flights  origin, tailnum, month (and p.year's namesake)    filter (`month` = 1)
    nyc.planes   tailnum, year                                     filter (`year` > 1990)
                                   │  each mention becomes a DataFrame of its own
    SELECT f.origin, count(*) FROM {t0} f JOIN {t1} p ON … WHERE f.month = 1 GROUP BY f.origin

Nothing but the names changes: the text is cut and put together again, and not written anew from a tree. So what Spark
answers is right as long as each DataFrame has every row and column that matters.

**Columns** are all those whose names occur in the text, as any word of it. That may be too many, and never too few,
even if sqlglot misreads the text. If stars, ``NATURAL`` or pivots stand for columns without their names, all are read.

**Conditions** are looked for in ``WHERE``, and in ``ON`` of inner joins, of a plain SELECT, below ``AND``. A table on
the side of an outer join that is filled up with nulls gets none. The choice among the others is made by
:mod:`pyspark_cortado.hints`. If the text has a construct that sqlglot and Spark may read in two ways, none is pushed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from cortado.errors import InvalidArgument, Unsupported
from cortado.schema.model import Schema
from pyspark_cortado.hints import Hints, Literals

Node: TypeAlias = Any
"""A node of sqlglot's tree."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Escapes (also of line ends, in comments), variables, pipes, names that are texts, collations.
_TWO_WAYS = re.compile(r"\\|\$\{|\|>|\bidentifier\s*\(|\bcollate\b", re.IGNORECASE)
_OF_SELECT: Final = frozenset(
    {
        "kind",
        "hint",
        "distinct",
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
    }
    | {"windows", "with_", "sort", "distribute", "cluster", "operation_modifiers"}
)
_OF_TABLE: Final = frozenset({"this", "db", "alias"})


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as it is read: a version of its schema, and the first field of its key."""

    schema: Schema
    version: int
    key: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One mention of ``table``. ``columns`` None are all."""

    table: str
    columns: tuple[str, ...] | None
    filter: str | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class _Splice:
    """``text[start:end]`` is replaced."""

    start: int
    end: int
    by: str


class Statement:
    """One query of Spark's that names tables of Cortado. Raises InvalidArgument with line and column, Unsupported."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._root = _parsed(text)
        mentions = [node for node in self._root.find_all(exp.Table) if _is_ours(node)]
        if not mentions:
            raise InvalidArgument("sql", "must name a table of Cortado, as database.table", text[:80])
        self._mentions = sorted(mentions, key=lambda node: _span(text, node.args["db"])[0])
        for node in self._mentions:
            _check(node)

    @property
    def tables(self) -> tuple[str, ...]:
        """Their full names, each once."""
        return tuple(dict.fromkeys(map(_full_name, self._mentions)))

    def references(self, shapes: Mapping[str, Shape], literals: Literals | None) -> list[Reference]:
        """Return the read of each mention, in the order of the text; without ``literals`` no condition is pushed."""
        pushes = literals is not None and not _TWO_WAYS.search(self.text)
        reads_all = self._reads_all() or not pushes
        words = {word.lower() for word in _WORD.findall(self.text)}
        found = []
        for node in self._mentions:
            name = _full_name(node)
            shape = shapes[name]
            names = [each.name for each in shape.schema.record.fields]
            named = tuple(each for each in names if each.lower() in words) or (shape.key,)
            columns = None if reads_all or len(named) == len(names) else named
            text = _Select(node, shapes).filter(node, shape, literals) if pushes and literals is not None else None
            found.append(Reference(name, columns, text, self._limit(node) if pushes else None))
        return found

    def template(self) -> str:
        """Return the text with ``{t0}``, ``{t1}``, … in the place of the tables, for ``str.format``."""
        splices = [splice for i, node in enumerate(self._mentions) for splice in self._splices(node, f"{{t{i}}}")]
        pieces, done = [], 0
        for splice in sorted(splices, key=lambda each: each.start):
            pieces += [_escaped(self.text[done : splice.start]), splice.by]
            done = splice.end
        return "".join([*pieces, _escaped(self.text[done:])])

    def _splices(self, node: Node, place: str) -> Iterator[_Splice]:
        start, end = _span(self.text, node.args["db"])[0], _span(self.text, node.this)[1]
        if node.args.get("alias") is not None:
            yield _Splice(start, end, place)
            return
        alias = f"`{_escaped(node.name)}`"
        yield _Splice(start, end, f"{place} AS {alias}")
        select = node.find_ancestor(exp.Select)
        for column in select.find_all(exp.Column) if select is not None else ():
            parts = column.parts
            if len(parts) > 2 and [parts[0].name.lower(), parts[1].name.lower()] == [
                node.db.lower(),
                node.name.lower(),
            ]:
                # Its table has no database any more.
                yield _Splice(_span(self.text, parts[0])[0], _span(self.text, parts[1])[1], alias)

    def _reads_all(self) -> bool:
        """Return whether columns are meant that are not named: then all are read, of all tables."""
        root = self._root
        counted = sum(isinstance(each.parent, exp.Count) for each in root.find_all(exp.Star))
        plain = counted + sum(type(each) is exp.Mul for each in root.find_all(exp.Mul))
        stars = sum(each.text == "*" for each in sqlglot.tokenize(self.text, read="spark"))
        aliases = (each for each in root.find_all(exp.TableAlias) if not isinstance(each.parent, exp.Lateral | exp.CTE))
        return (
            stars > plain
            or any(each.args.get("columns") for each in aliases)
            or any(each.method for each in root.find_all(exp.Join))
            or root.find(exp.Pivot, exp.QueryTransform) is not None
        )

    def _limit(self, node: Node) -> int | None:
        """Return the limit of a query that only names columns of this table."""
        root = self._root
        parts = {name for name, value in root.args.items() if value}
        if type(root) is not exp.Select or node.parent is not root.args.get("from_"):
            return None
        plain = all(
            isinstance(each.this if isinstance(each, exp.Alias) else each, exp.Column | exp.Star)
            for each in root.expressions
        )
        if not plain or not parts <= {"expressions", "from_", "limit"} or "limit" not in parts:
            return None
        limit = root.args["limit"]
        number = limit.args.get("expression")
        given = {name for name, value in limit.args.items() if value}
        is_number = given == {"expression"} and type(number) is exp.Literal and number.this.isdecimal()
        return int(number.this) if is_number and len(number.this) < 10 and _is_plain(node) else None


class _Select:
    """The SELECT that reads a table, as far as it matters for what its conditions are about."""

    def __init__(self, node: Node, shapes: Mapping[str, Shape]) -> None:
        self._select = node.parent.find_ancestor(exp.Select)
        self._shapes = shapes
        select = self._select
        joins = select.args.get("joins") or []
        self._sources = [select.args["from_"].this, *(join.this for join in joins)] if "from_" in select.args else []
        self._joins = joins
        given = {name for name, value in select.args.items() if value}
        self._is_known = (
            given <= _OF_SELECT
            and any(each is node for each in self._sources)
            and not any(isinstance(each, exp.Lateral | exp.Unnest) for each in self._sources)
            and not any(isinstance(each, exp.Table) and not _is_plain(each) for each in self._sources)
        )

    def filter(self, node: Node, shape: Shape, literals: Literals) -> str | None:
        """Return the filter for the rows of ``node``."""
        if not self._is_known or any(each is node for each in self._filled()):
            return None
        hints = Hints(shape.schema, literals, lambda column: self._field(node, column))
        return hints.of([each for condition in self._conditions() for each in _conjuncts(condition)])

    def _filled(self) -> Iterator[Node]:
        """Yield sources with rows that may be replaced by nulls, or are not seen by WHERE."""
        for place, join in enumerate(self._joins, 1):
            if join.side in ("RIGHT", "FULL"):
                yield from self._sources[:place]
            if join.side in ("LEFT", "FULL") or join.kind in ("SEMI", "ANTI"):
                yield self._sources[place]

    def _conditions(self) -> Iterator[Node]:
        where = self._select.args.get("where")
        if where is not None:
            yield where.this
        for join in self._joins:
            is_inner = not join.side and join.kind in ("", "INNER") and not join.method
            if is_inner and join.args.get("on") is not None and not join.args.get("using"):
                yield join.args["on"]

    def _field(self, node: Node, column: Node) -> Sequence[str] | None:
        """Return the names of a field of ``node``, from the top down; None if the column may be another thing."""
        parts = [each.name for each in column.parts]
        if any(isinstance(each, exp.Star) for each in column.parts):
            return None
        aliases = [each.alias_or_name.lower() for each in self._sources]
        own, first = node.alias_or_name.lower(), parts[0].lower()
        known = [self._names(each) for each in self._sources]
        if len(parts) > 1 and first == own:
            is_clear = aliases.count(own) == 1 and not any(own in names for names in known if names is not None)
            return parts[1:] if is_clear else None
        if first in aliases or any(names is None for names in known):
            return None
        owners = [
            each for each, names in zip(self._sources, known, strict=True) if names is not None and first in names
        ]
        return parts if len(owners) == 1 and owners[0] is node else None

    def _names(self, source: Node) -> set[str] | None:
        """Return the columns of a source, None if only Spark knows them."""
        if not isinstance(source, exp.Table) or not _is_ours(source):
            return None
        return {each.name.lower() for each in self._shapes[_full_name(source)].schema.record.fields}


def _parsed(text: str) -> Node:
    try:
        trees = [tree for tree in sqlglot.parse(text, read="spark") if tree is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = f"at line {first.get('line')}, column {first.get('col')}"
        problem = str(first.get("description", error)).split(" but got <Token")[0]
        raise InvalidArgument("sql", f"does not parse: {problem}, {where}", str(first.get("highlight", ""))) from None
    except SqlglotError as error:
        raise InvalidArgument("sql", f"does not parse: {error}") from None
    if len(trees) != 1:
        raise InvalidArgument("sql", "must be one statement", f"{len(trees)} statements")
    if not isinstance(trees[0], exp.Query):
        # The parser keeps unknown statements as a command, which is called by its first word.
        kind = trees[0].name if isinstance(trees[0], exp.Command) else type(trees[0]).__name__
        raise Unsupported(f"sql() of {kind.upper()}", "it takes queries: SELECT, WITH, UNION")
    return trees[0]


def _is_ours(node: Node) -> bool:
    """A name of two parts is a table of Cortado; other names are Spark's, or the query's own."""
    is_name = isinstance(node.this, exp.Identifier) and isinstance(node.args.get("db"), exp.Identifier)
    return is_name and not node.args.get("catalog") and not isinstance(node.parent, exp.JoinHint | exp.Hint)


def _check(node: Node) -> None:
    """Refuse clauses that a table of Cortado cannot have within a query."""
    name = _full_name(node)
    if node.args.get("version") or node.args.get("when"):
        raise Unsupported(f"AS OF behind {name} in sql()", "all tables are read at one time: give it as at=...")
    if not isinstance(node.parent, exp.From | exp.Join | exp.Subquery):
        raise Unsupported(f"{name} as an argument in sql()", "name it behind FROM or JOIN")
    if node.args.get("sample") and node.args.get("alias") is None:
        raise InvalidArgument("sql", f"must give {name} an alias, since TABLESAMPLE follows it")


def _is_plain(node: Node) -> bool:
    """Nothing stands behind the table's name but an alias."""
    given = {name for name, value in node.args.items() if value}
    alias = node.args.get("alias")
    return given <= _OF_TABLE and (alias is None or not alias.args.get("columns"))


def _full_name(node: Node) -> str:
    return f"{node.db}.{node.name}"


def _conjuncts(condition: Node) -> Iterator[Node]:
    if type(condition) is exp.Paren:
        yield from _conjuncts(condition.this)
    elif type(condition) is exp.And:
        for each in condition.flatten():
            yield from _conjuncts(each)
    else:
        yield condition


def _span(text: str, name: Node) -> tuple[int, int]:
    """Return the place of a name in the text, with its backquotes."""
    start, end = name.meta.get("start", 0), name.meta.get("end", -1) + 1
    if text[start:end].strip("`") != name.name:
        raise Unsupported(f"the name {name.name} in sql()", "write it in letters, digits and _")
    return start, end


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
