"""From aggregates over a table's fields to their computation: every field exists, every aggregate has a meaning.

An aggregate of rows is *partial* until all rows were looked at, and travels so. The type of a partial aggregate, and of
the finished one when all are merged::

    aggregate              partial (the groups' schema)            finished (the result's schema)
    count                  long                                    long
    sum of int, long       decimal(38, 0), which cannot overflow   long
    sum of float, double   double                                  double
    sum of decimal(p, s)   decimal(57, s), which cannot overflow   decimal(min(p + 10, 38), s)
    avg                    the sum, and a count behind it          double; decimal(min(p + 4, 38), min(s + 4, 38))
    min, max, a group      the field's type                        the field's type

Precisions are Spark's. Enums are strings there, a fixed is bytes, and a UUID has 16 bytes. Whether a sum overflows is
known only after the merge: so the answer does not depend on where a scan was cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cortado.errors import InvalidArgument, TooLarge
from cortado.schema.field_paths import find_field, way_through_recursion
from cortado.schema.model import Fixed, Primitive, Schema
from cortado.schema.parse import parse_document_schema
from cortado.store.aggregate.measures import INTEGER_BYTES, CountRows, CountValues, ExactSum, Extreme, Measure, RealSum
from cortado.store.aggregate.reduce import Merge
from cortado.store.aggregate.values import SUM_BYTES, SUM_PRECISION, decimal_bytes, decimal_of
from cortado.store.filter.expression import Path
from cortado.store.filter.fields import Family, FieldRef, family_of

GROUP_FIELDS_MAX: Final = 32
AGGREGATES_MAX: Final = 100

PRECISION_MAX: Final = 38
"""The greatest precision of decimals that are summed up, and of the results: as Spark has it."""
_SUM_DIGITS: Final = 10
_AVG_DIGITS: Final = 4


class Kind(StrEnum):
    """The functions of a group's rows."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``field`` is a path; empty for the count of rows."""

    kind: Kind
    field: str = ""

    def __str__(self) -> str:
        return f"{self.kind}({self.field or '*'})"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Aggregates that fit a schema. ``groups_schema`` is that of partial groups, ``result_schema`` of merged ones."""

    group_by: tuple[FieldRef, ...]
    measures: tuple[Measure, ...]
    groups_schema: Schema
    result_schema: Schema

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that are read, each once."""
        fields = [field.path for field in self.group_by]
        fields += [path for measure in self.measures for path in measure.paths]
        return tuple(dict.fromkeys(fields))


def bind_aggregates(
    schema: Schema, group_by: Sequence[str], aggregates: Sequence[Aggregate], table_name: str
) -> Aggregation:
    """Bind the aggregates of a request to the schema that rows are read with. Raises InvalidArgument, which names the
    field and the aggregate, TooLarge for too many of either."""
    _check_count("group_by", len(group_by), GROUP_FIELDS_MAX)
    _check_count("aggregates", len(aggregates), AGGREGATES_MAX)
    if not aggregates:
        raise InvalidArgument("aggregates", "must be at least one, such as count(*)")
    _check_once("group_by", group_by)
    _check_once("aggregates", list(map(str, aggregates)))
    groups, partial, finished = [], [], []
    for i, path in enumerate(group_by):
        field = _field(schema, path, "group_by", path, table_name)
        if field.family is Family.OPAQUE:
            raise InvalidArgument("group_by", f"field {path} is of a type whose values do not make groups", path)
        groups.append(field)
        partial.append(_nullable(f"group_{i}", _value_type(field, f"group_{i}_value")))
    finished += partial
    measures = []
    for i, aggregate in enumerate(aggregates):
        bound = _Bound(aggregate, f"aggregate_{i}")
        if aggregate.field:
            bound.bind(_field(schema, aggregate.field, "aggregates", str(aggregate), table_name))
        elif aggregate.kind is not Kind.COUNT:
            raise InvalidArgument("aggregates", f"{aggregate.kind} takes a field", str(aggregate))
        measures.append(bound.measure)
        partial += bound.partial
        finished.append(bound.finished)
    return Aggregation(tuple(groups), tuple(measures), _record("Groups", partial), _record("Result", finished))


def _check_count(field: str, count: int, most: int) -> None:
    if count > most:
        raise TooLarge(field, f"must be at most {most}", str(count), count, most)


def _check_once(field: str, asked: Sequence[str]) -> None:
    for place, each in enumerate(asked):
        if each in asked[:place]:
            raise InvalidArgument(field, f"names {each} twice", each)


def _field(schema: Schema, path: str, where: str, asked: str, table_name: str) -> FieldRef:
    try:
        found = find_field(schema, path)
    except InvalidArgument as unknown:
        raise InvalidArgument(where, f"no field {path} in table {table_name}: {unknown.problem}", asked) from None
    recursion = way_through_recursion(schema, path)
    if recursion is not None:
        raise InvalidArgument(where, recursion, asked)
    family, unit_ns = family_of(found.type)
    return FieldRef(Path(tuple(path.split(".")), 0).names, found.type, family, unit_ns)


class _Bound:
    """One aggregate: how it is worked out, and the fields that it takes in either schema."""

    def __init__(self, aggregate: Aggregate, name: str) -> None:
        self._aggregate = aggregate
        self._name = name
        self.measure: Measure = CountRows()
        self.partial: list[dict[str, Any]] = [{"name": name, "type": "long"}]
        self.finished: dict[str, Any] = {"name": name, "type": "long"}

    def bind(self, field: FieldRef) -> None:
        """Raises InvalidArgument if the field's type does not fit."""
        match self._aggregate.kind:
            case Kind.COUNT:
                self.measure = CountValues(field)
            case Kind.MIN | Kind.MAX:
                self._extreme(field)
            case Kind.SUM | Kind.AVG:
                self._sum(field)

    def _extreme(self, field: FieldRef) -> None:
        if field.family is Family.OPAQUE:
            raise self._misfit(field, "a type whose values have an order")
        self.measure = Extreme(field, Merge.MIN if self._aggregate.kind is Kind.MIN else Merge.MAX)
        self.finished = _nullable(self._name, _value_type(field, f"{self._name}_value"))
        self.partial = [self.finished]

    def _sum(self, field: FieldRef) -> None:
        with_count = self._aggregate.kind is Kind.AVG
        match field.family:
            case Family.REAL:
                self.measure = RealSum(field, with_count)
                self._sum_types("double", "double")
            case Family.INTEGER:
                self.measure = ExactSum(field, with_count)
                partial = _decimal(f"{self._name}_sum", PRECISION_MAX, 0, INTEGER_BYTES)
                self._sum_types(partial, "double" if with_count else "long")
            case Family.DECIMAL:
                self._decimal_sum(field, with_count)
            case _:
                raise self._misfit(field, "an int, long, float, double or decimal")

    def _decimal_sum(self, field: FieldRef, with_count: bool) -> None:
        logical = decimal_of(field.type)
        if logical.precision > PRECISION_MAX:
            raise self._misfit(field, f"a decimal of at most {PRECISION_MAX} digits, it has {logical.precision}")
        more = _AVG_DIGITS if with_count else _SUM_DIGITS
        scale = min(logical.scale + _AVG_DIGITS, PRECISION_MAX) if with_count else logical.scale
        self.measure = ExactSum(field, with_count)
        self._sum_types(
            _decimal(f"{self._name}_sum", SUM_PRECISION, logical.scale, SUM_BYTES),
            {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": min(logical.precision + more, PRECISION_MAX),
                "scale": scale,
            },
        )

    def _sum_types(self, partial: Any, finished: Any) -> None:
        self.partial = [_nullable(self._name, partial)]
        if self._aggregate.kind is Kind.AVG:
            self.partial.append({"name": f"{self._name}_count", "type": "long"})
        self.finished = _nullable(self._name, finished)

    def _misfit(self, field: FieldRef, expected: str) -> InvalidArgument:
        problem = f"field {field.path} is {field.family}: {self._aggregate.kind} takes {expected}"
        return InvalidArgument("aggregates", problem, str(self._aggregate))


# --- schemas -------------------------------------------------------------------------------------------------------


def _record(name: str, fields: Sequence[dict[str, Any]]) -> Schema:
    return parse_document_schema(json.dumps({"type": "record", "name": name, "fields": fields}))


def _nullable(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_]}


def _decimal(name: str, precision: int, scale: int, size: int) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": name,
        "size": size,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


def _value_type(field: FieldRef, name: str) -> Any:
    """Return the type of a value of that field, as groups have it; ``name`` is for a type that needs one."""
    match field.family:
        case Family.TEXT | Family.ENUM:
            return "string"
        case Family.BYTES:
            return "bytes"
        case Family.UUID:
            return {"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}
        case Family.DECIMAL:
            logical = decimal_of(field.type)
            return _decimal(name, logical.precision, logical.scale, decimal_bytes(logical))
    assert isinstance(field.type, Primitive) and not isinstance(field.type, Fixed)
    kind = str(field.type.kind)
    return kind if field.type.logical is None else {"type": kind, "logicalType": str(field.type.logical.kind)}
