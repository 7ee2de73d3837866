"""Random Avro declarations, their evolutions, and values that belong to them."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from typing import Any, assert_never

from hypothesis import strategies as st

from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, LogicalKind, Map, Primitive, Record, Union
from cortado.schema.names import branch_name
from cortado.schema.shape import records_of
from cortado.schema.union_branches import ambiguous_branches
from cortado.schema.values import Branch, Duration

PLAIN = ("boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 3},
    {"type": "string", "logicalType": "uuid"},
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
)
FIXED_LOGICAL: tuple[dict[str, Any], ...] = (
    {"size": 6, "logicalType": "decimal", "precision": 14, "scale": 4},
    {"size": 16, "logicalType": "uuid"},
    {"size": 12, "logicalType": "duration"},
)
_WIDE = Context(prec=2000)
_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
}
COMPLEX = ("record", "array", "fixed", "enum", "map")
FIELD_NAMES = ("a", "b", "c", "d")
SYMBOLS = ("RED", "GREEN", "BLUE")


@dataclass
class Grammar:
    """The names and forms that declarations may use. ``declared`` names types that later ones may refer to, ``open``
    records around; ``complex_names``: some types are called record, array and so on."""

    plain: tuple[str, ...] = PLAIN
    logical: bool = True
    recursive: bool = True
    complex_names: bool = True
    declared: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    count: int = 0

    def name(self, prefix: str) -> str:
        """Draw a name, also of the complex types: Avro reserves the names of its primitive types alone."""
        self.count += 1
        place = (self.count - 1) // 2
        is_complex = self.complex_names and self.count % 2 and place < len(COMPLEX)
        return COMPLEX[place] if is_complex else f"{prefix}{self.count}"


@st.composite
def document_declarations(draw: st.DrawFn, **options: Any) -> dict[str, Any]:
    """Draw a record's declaration, as JSON."""
    return draw(_records(Grammar(**options), 3))


@st.composite
def _records(draw: st.DrawFn, grammar: Grammar, depth: int) -> dict[str, Any]:
    name = grammar.name("R")
    grammar.open.append(name)
    fields = []
    for each in draw(st.lists(st.sampled_from(FIELD_NAMES), max_size=4, unique=True)):
        avro_type = draw(_types(grammar, depth - 1))
        one: dict[str, Any] = {"name": each, "type": avro_type}
        default = draw(st.sampled_from([None, default_of(avro_type)]))
        if default is not None:
            one["default"] = default[0]
        fields.append(one)
    grammar.open.remove(name)
    grammar.declared.append(name)
    return {"type": "record", "name": name, "fields": fields}


@st.composite
def _types(draw: st.DrawFn, grammar: Grammar, depth: int) -> Any:
    shapes = ["plain", "plain", "nullable", "enum", "fixed"]
    if grammar.logical:
        shapes += ["logical", "fixed logical"]
    if depth > 0:
        shapes += ["record", "array", "map", "union"]
    if grammar.recursive and grammar.open:
        shapes.append("again")
    if grammar.declared:
        shapes.append("reference")
    match draw(st.sampled_from(shapes)):
        case "plain":
            return draw(st.sampled_from([*grammar.plain, "null"]))
        case "logical":
            return draw(st.sampled_from(LOGICAL))
        case "enum":
            symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
            return _declared(grammar, {"type": "enum", "name": grammar.name("E"), "symbols": symbols})
        case "fixed":
            size = draw(st.integers(1, 3))
            return _declared(grammar, {"type": "fixed", "name": grammar.name("F"), "size": size})
        case "fixed logical":
            shape = draw(st.sampled_from(FIXED_LOGICAL))
            return _declared(grammar, {"type": "fixed", "name": grammar.name("F"), **shape})
        case "again":
            around = draw(st.sampled_from(grammar.open))
            return draw(st.sampled_from([["null", around], {"type": "array", "items": around}]))
        case "reference":
            return draw(st.sampled_from(grammar.declared))
        case "record":
            return draw(_records(grammar, depth))
        case "array":
            return {"type": "array", "items": draw(_types(grammar, depth - 1))}
        case "map":
            return {"type": "map", "values": draw(_types(grammar, depth - 1))}
        case "nullable":
            inner = draw(_types(grammar, 0))
            branches = [inner] if inner == "null" or isinstance(inner, list) else draw(st.permutations(["null", inner]))
            return inner if isinstance(inner, list) else branches
        case _:
            return _union(draw, grammar, depth)


def _declared(grammar: Grammar, declaration: dict[str, Any]) -> dict[str, Any]:
    grammar.declared.append(declaration["name"])
    return declaration


def _union(draw: st.DrawFn, grammar: Grammar, depth: int) -> list[Any]:
    branches: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        declared = list(grammar.declared)
        branch = draw(_types(grammar, depth - 1))
        more = branch if isinstance(branch, list) else [branch]
        names = [json_branch_name(each) for each in [*branches, *more]]
        if len(set(names)) == len(names):
            branches += more
        else:
            grammar.declared = declared  # A dropped declaration declares nothing.
    return branches


def json_branch_name(declaration: Any) -> str:
    if isinstance(declaration, str):
        return declaration
    return str(declaration.get("name", declaration["type"]))


def default_of(avro_type: Any) -> tuple[Any] | None:
    """Return a default that suits a declaration, in a tuple, or None for a name: its type is not known here."""
    if isinstance(avro_type, list):
        return default_of(avro_type[0])
    if isinstance(avro_type, str):
        simple = {"null": None, "boolean": True, "int": 7, "long": -9, "float": 0.5, "double": 2.5}
        texts = {"string": "héllo", "bytes": "\u00ff"}
        known: dict[str, Any] = {**simple, **texts}
        return (known[avro_type],) if avro_type in known else None
    match avro_type["type"]:
        case "enum":
            return (avro_type["symbols"][0],)
        case "fixed":
            return ("\u0001" * avro_type["size"],) if "logicalType" not in avro_type else ("\0" * avro_type["size"],)
        case "array":
            return ([],)
        case "map":
            return ({},)
        case "record":
            return None
        case "string":
            return ("01234567-89ab-cdef-0123-456789abcdef",)
        case "bytes":
            return ("\u0001",)
        case _:
            return (86_399,)


@st.composite
def evolutions(draw: st.DrawFn, declaration: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Draw a later version of a declaration, by a few edits; some are compatible, some are not."""
    evolved = copy.deepcopy(declaration)
    grammar = Grammar(**options, count=100)
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(evolved))
        _edit(draw, grammar, draw(st.sampled_from(places)))
    # An edit may have moved a declaration behind a reference to it, or doubled a name: then it is no schema.
    return evolved


def _places(declaration: Any) -> Any:
    """Yield every JSON object in a declaration that is a type or a field."""
    if isinstance(declaration, list):
        for each in declaration:
            yield from _places(each)
    if isinstance(declaration, dict):
        yield declaration
        for key in ("fields", "items", "values", "type"):
            yield from _places(declaration.get(key))


def _edit(draw: st.DrawFn, grammar: Grammar, place: dict[str, Any]) -> None:
    if "fields" in place:
        _edit_record(draw, grammar, place)
    elif place.get("type") == "enum":
        place["symbols"] = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
        if draw(st.booleans()):
            place["default"] = place["symbols"][0]
    elif place.get("type") == "fixed" and "logicalType" not in place:
        place["size"] = draw(st.integers(1, 3))
    elif "type" in place and "name" in place:
        place.pop("default", None)
        place["type"] = draw(st.one_of(_widened(place["type"]), _types(grammar, 1)))
    else:
        for key in ("items", "values"):
            if key in place:
                place[key] = draw(st.one_of(_widened(place[key]), _types(grammar, 1)))


def _widened(avro_type: Any) -> st.SearchStrategy[Any]:
    """Draw types that read values of ``avro_type``."""
    if isinstance(avro_type, list):
        branches = [_PROMOTED.get(each, (each,))[-1] if isinstance(each, str) else each for each in avro_type]
        wider = [*avro_type, "long"] if "long" not in avro_type else avro_type
        return st.sampled_from([branches if len(set(map(str, branches))) == len(branches) else avro_type, wider])
    if isinstance(avro_type, str):
        nullable = [["null", avro_type]] if avro_type != "null" else []
        return st.sampled_from([*_PROMOTED.get(avro_type, ()), avro_type, *nullable])
    return st.sampled_from([["null", avro_type], avro_type, [avro_type, "string", "int"]])


def _edit_record(draw: st.DrawFn, grammar: Grammar, record: dict[str, Any]) -> None:
    fields = record["fields"]
    edits = ["add", "add", "rename record"]
    if fields:
        edits += ["remove", "rename", "reorder", "remove", "rename with alias", "rename with alias", "undefault"]
    match draw(st.sampled_from(edits)):
        case "add":
            avro_type = draw(_types(grammar, 1))
            new: dict[str, Any] = {"name": f"n{len(fields)}", "type": avro_type}
            default = default_of(avro_type)
            if default is not None and draw(st.integers(0, 3)):
                new["default"] = default[0]
            if new["name"] not in [each["name"] for each in fields]:
                fields.append(new)
        case "remove":
            del fields[draw(st.integers(0, len(fields) - 1))]
        case "reorder":
            fields.reverse()
        case "undefault":
            draw(st.sampled_from(fields)).pop("default", None)
        case "rename" | "rename with alias" as edit:
            one = draw(st.sampled_from(fields))
            if edit == "rename with alias":
                one["aliases"] = [one["name"]]
            one["name"] = f"{one['name']}_{grammar.name('x')}"
        case _:
            if draw(st.booleans()):
                record["aliases"] = [record["name"]]
            record["name"] = grammar.name("Q")


# --- values ----------------------------------------------------------------------------------------------------


def values_of(avro_type: AvroType, depth: int = 4) -> st.SearchStrategy[Any]:
    """Draw values of a type as a reader gives them, so that one that is written and read again is equal."""
    match avro_type:
        case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
            return _logical_values(avro_type, logical.kind, logical.precision, logical.scale)
        case Primitive(kind=kind):
            return _PLAIN_VALUES[kind]
        case Fixed(size=size):
            return st.binary(min_size=size, max_size=size)
        case Enum(symbols=symbols):
            return st.sampled_from(symbols)
        case Array(items=items):
            return st.lists(st.deferred(lambda: values_of(items, depth - 1)), max_size=3 if depth > 0 else 0)
        case Map(values=values):
            inner = st.deferred(lambda: values_of(values, depth - 1))
            return st.dictionaries(st.text(max_size=3), inner, max_size=3 if depth > 0 else 0)
        case Union():
            return _union_values(avro_type, depth)
        case Record(fields=fields):
            return st.fixed_dictionaries(
                {each.name: st.deferred(lambda each=each: values_of(each.type, depth - 1)) for each in fields}
            )
        case _:
            assert_never(avro_type)


def _union_values(union: Union, depth: int) -> st.SearchStrategy[Any]:
    if depth <= 0 and NULL in union.branches:
        return st.none()
    ambiguous = ambiguous_branches(union)
    choices = []
    for index, branch in enumerate(union.branches):
        values = values_of(branch, depth - 1)
        if index in ambiguous:
            values = st.builds(Branch, st.just(branch_name(branch)), values)
        choices.append(values)
    return st.one_of(choices)


_PLAIN_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.NULL: st.none(),
    Kind.BOOLEAN: st.booleans(),
    Kind.INT: st.integers(-(2**31), 2**31 - 1),
    Kind.LONG: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT: st.floats(width=32, allow_nan=False),
    Kind.DOUBLE: st.floats(allow_nan=False),
    Kind.BYTES: st.binary(max_size=70),
    Kind.STRING: st.text(max_size=70),
}


def _logical_values(avro_type: Primitive | Fixed, kind: LogicalKind, precision: int, scale: int) -> Any:
    def whole_millis(value: Any) -> Any:
        return value.replace(microsecond=value.microsecond // 1000 * 1000)

    moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
    match kind:
        case LogicalKind.DECIMAL:
            bound = 10**precision - 1
            return st.integers(-bound, bound).map(lambda unscaled: Decimal(unscaled).scaleb(-scale, _WIDE))
        case LogicalKind.UUID:
            return st.uuids()
        case LogicalKind.DATE:
            return st.dates(date.min, date.max)
        case LogicalKind.TIME_MILLIS:
            return st.times(time.min, time.max).map(whole_millis)
        case LogicalKind.TIME_MICROS:
            return st.times(time.min, time.max)
        case LogicalKind.TIMESTAMP_MILLIS:
            return moments.map(whole_millis).map(lambda moment: moment.replace(tzinfo=UTC))
        case LogicalKind.TIMESTAMP_MICROS:
            return moments.map(lambda moment: moment.replace(tzinfo=UTC))
        case LogicalKind.LOCAL_TIMESTAMP_MILLIS:
            return moments.map(whole_millis)
        case LogicalKind.LOCAL_TIMESTAMP_MICROS:
            return moments
        case LogicalKind.DURATION:
            return st.builds(Duration, *[st.integers(0, 2**32 - 1)] * 3)
        case _:
            return _PLAIN_VALUES[Kind.LONG]


def unions_of(root: AvroType) -> list[Union]:
    """Return every union that can be reached from a type."""
    types = [root, *(field.type for record in records_of(root) for field in record.fields)]
    found = []
    while types:
        match types.pop():
            case Union() as union:
                found.append(union)
                types.extend(union.branches)
            case Array(items=inner) | Map(values=inner):
                types.append(inner)
    return found


def declaration_text(declaration: Any) -> str:
    return json.dumps(declaration)
