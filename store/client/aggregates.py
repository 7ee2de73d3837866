"""Groups of rows as a client has them: partial ones are merged as they come, and finished at the end.

::

    replies of the server      UA 3 | AA 5      UA 4 | DL 1        partial, of the rows since the last reply
    Groups                     UA 3 | AA 5      UA 7 | AA 5 | DL 1
    rows()                                      {"carrier": "AA", "n": 5}, ...

Whether a sum fits its type is known when all are merged. Until then sums are exact at any size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cortado.errors import InvalidArgument, TooLarge
from cortado.proto.v1 import documents_pb2
from cortado.schema.documents import decode_document
from cortado.schema.json_format import to_json_value
from cortado.schema.limits import LONG_MAX, LONG_MIN
from cortado.schema.model import AvroType, Kind, Logical, Primitive, Schema, Union
from cortado.store.client.aggregate_text import Aggregate, AggregateKind, AggregateQuery
from cortado.store.client.documents import RowBatch, projection

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS_MAX: Final = 1_000_000
"""That a client merges, unless it is asked for more: some hundreds of bytes of memory each."""
GROUPS_MAX_MOST: Final = 1 << 31

_EXACT: Final = Context(prec=200)
_KINDS: Final = {
    AggregateKind.COUNT: documents_pb2.AGGREGATE_KIND_COUNT,
    AggregateKind.SUM: documents_pb2.AGGREGATE_KIND_SUM,
    AggregateKind.MIN: documents_pb2.AGGREGATE_KIND_MIN,
    AggregateKind.MAX: documents_pb2.AGGREGATE_KIND_MAX,
    AggregateKind.AVG: documents_pb2.AGGREGATE_KIND_AVG,
}

Key: TypeAlias = tuple[Any, ...]


def aggregates_to_proto(query: AggregateQuery) -> list[documents_pb2.Aggregate]:
    """Return the aggregates for the server, without repetitions."""
    asked = dict.fromkeys((each.kind, each.field) for each in query.aggregates)
    return [documents_pb2.Aggregate(kind=_KINDS[kind], field=field) for kind, field in asked]


class Groups:
    """Groups of rows, merged so far. Not for two threads at once: each merges its own, and one :meth:`merge` those."""

    def __init__(self, query: AggregateQuery, *, groups_max: int = GROUPS_MAX) -> None:
        self.query = query
        self._groups_max = groups_max
        self._groups: dict[Key, list[Any]] = {}
        self._measures = _measures_of(query)
        self._result: Schema | None = None

    def __len__(self) -> int:
        return len(self._groups)

    def _add(self, reply: documents_pb2.AggregateResponse) -> None:
        """Merge the groups of one reply. Raises TooLarge if there are more than a client merges."""
        self._result = projection(reply.result_schema)
        schema = projection(reply.groups_schema)
        batch = RowBatch(0, reply.groups.bodies, reply.groups.lengths, b"", schema)
        width = len(self.query.group_by)
        for body in batch.each_body():
            values = list(decode_document(schema, body).values())
            self._merge(tuple(map(_one_nan, values[:width])), values[width:])

    def merge(self, other: Groups) -> None:
        """Merge those of other ranges of the same table. Raises TooLarge."""
        if other._result is not None:
            self._result = other._result
        for key, values in other._groups.items():
            self._merge(key, list(values))

    def _merge(self, key: Key, values: list[Any]) -> None:
        before = self._groups.setdefault(key, values)
        if before is values:
            if len(self._groups) > self._groups_max:
                problem = f"there are more than {self._groups_max}: group by fewer fields, or raise groups_max"
                raise TooLarge("groups", problem, "", len(self._groups), self._groups_max)
            return
        for measure in self._measures:
            measure.merge(before, values)

    # --- the result ------------------------------------------------------------------------------------------

    def schema(self) -> Schema:
        """Return the Avro schema of finished rows; its fields are called group_0, ... and aggregate_0, ..., as they are
        asked for. Raises InvalidArgument if no reply was added."""
        if self._result is None:
            raise InvalidArgument("groups", "are empty: no reply was added")
        return self._result

    def rows(self) -> list[dict[str, Any]]:
        """Return the finished rows by column name, in the order of their groups, null first. Without fields to group by
        it is one row, also of an empty table. Raises InvalidArgument for a sum that its type does not hold."""
        places = self._places()
        return [dict(zip(self.query.names, (row[at] for at in places), strict=True)) for row in self._finished()]

    def json_rows(self) -> list[dict[str, Any]]:
        """Return :meth:`rows` with values in their JSON form: see :meth:`Document.to_json`."""
        places = self._places()
        types = [field.type for field in self.schema().record.fields]
        return [
            dict(zip(self.query.names, (to_json_value(types[at], row[at]) for at in places), strict=True))
            for row in self._finished()
        ]

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table. Needs pyarrow and numpy."""
        from cortado.store.client.arrow import table_of

        return table_of(self.schema(), list(self._finished()), self._places(), self.query.names)

    def _places(self) -> list[int]:
        """Return the place of each result column in a finished row, which has each aggregate once."""
        width = len(self.query.group_by)
        asked = list(dict.fromkeys((each.kind, each.field) for each in self.query.aggregates))
        return [*range(width), *(width + asked.index((each.kind, each.field)) for each in self.query.aggregates)]

    def _finished(self) -> Iterator[tuple[Any, ...]]:
        """Yield finished rows with values of the result's schema."""
        width = len(self.query.group_by)
        types = [_present(field.type) for field in self.schema().record.fields[width:]]
        groups = self._groups
        if not width and not groups:
            groups = {(): [value for measure in self._measures for value in measure.nothing]}
        for key in sorted(groups, key=lambda key: tuple(map(_order, key))):
            done = (measure.finish(groups[key], type_) for measure, type_ in zip(self._measures, types, strict=True))
            yield (*key, *done)


def _one_nan(value: Any) -> Any:
    """Return one NaN for all: NaN equals itself only if it is the same object."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _order(value: Any) -> tuple[int, Any]:
    """Return a sort key: null first, NaN last."""
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def _present(type_: AvroType) -> AvroType:
    inner = type_.nullable if isinstance(type_, Union) else None
    return type_ if inner is None else inner


# --- one aggregate -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Measure:
    """One aggregate among a group's values, which begins at place ``at``."""

    aggregate: Aggregate
    at: int

    @property
    def nothing(self) -> list[Any]:
        """Its values without any row."""
        match self.aggregate.kind:
            case AggregateKind.COUNT:
                return [0]
            case AggregateKind.AVG:
                return [None, 0]
            case _:
                return [None]

    def merge(self, values: list[Any], more: Sequence[Any]) -> None:
        """Put ``more`` to the values."""
        at, kind = self.at, self.aggregate.kind
        values[at] = _merged(kind, values[at], more[at])
        if kind is AggregateKind.AVG:
            values[at + 1] += more[at + 1]

    def finish(self, values: Sequence[Any], type_: AvroType) -> Any:
        """Return the aggregate's final value. Raises InvalidArgument if ``type_``, the result's, does not hold it."""
        value = values[self.at]
        if value is None:
            return None
        match self.aggregate.kind:
            case AggregateKind.SUM:
                return self._sum(value, type_)
            case AggregateKind.AVG:
                return self._average(value, values[self.at + 1], type_)
            case _:
                return value

    def _sum(self, value: Any, type_: AvroType) -> Any:
        if isinstance(value, float):
            return value
        logical = _decimal(type_)
        if logical is not None:
            return self._checked(value, logical)
        total = int(value)
        if not LONG_MIN <= total <= LONG_MAX:
            raise self._overflow(total, "a long: ask for the average, or for a sum of ranges")
        return total

    def _average(self, value: Any, count: int, type_: AvroType) -> Any:
        if isinstance(value, float):
            return value / count
        logical = _decimal(type_)
        if logical is None:
            return float(_EXACT.divide(value, Decimal(count)))
        unit = Decimal((0, (1,), -logical.scale))
        exact = _EXACT.divide(value, Decimal(count))
        return self._checked(exact.quantize(unit, ROUND_HALF_UP, _EXACT), logical)

    def _checked(self, value: Decimal, logical: Logical) -> Decimal:
        if value and value.adjusted() >= logical.precision - logical.scale:
            raise self._overflow(value, f"a decimal of {logical.precision} digits, {logical.scale} after the point")
        return value

    def _overflow(self, value: Any, holder: str) -> InvalidArgument:
        asked = f"{self.aggregate.kind}({self.aggregate.field})"
        problem = f"{asked} of field {self.aggregate.field} is more than fits {holder}"
        return InvalidArgument("aggregates", problem, str(value))


def _measures_of(query: AggregateQuery) -> list[_Measure]:
    """Return the measures of the aggregates that the server computes, in its order."""
    found: dict[tuple[AggregateKind, str], _Measure] = {}
    at = 0
    for each in query.aggregates:
        if (each.kind, each.field) not in found:
            measure = found[each.kind, each.field] = _Measure(each, at)
            at += len(measure.nothing)
    return list(found.values())


def _decimal(type_: AvroType) -> Logical | None:
    return type_.logical if isinstance(type_, Primitive) and type_.kind is Kind.BYTES else None


def _merged(kind: AggregateKind, value: Any, more: Any) -> Any:
    if value is None or more is None:
        return more if value is None else value
    match kind:
        case AggregateKind.MIN:
            return more if _order(more) < _order(value) else value
        case AggregateKind.MAX:
            return more if _order(more) > _order(value) else value
        case _:
            return _EXACT.add(value, more) if isinstance(value, Decimal) else value + more
