"""Schemas both ways: Avro for a DataFrame's columns, Spark's columns for an Avro schema, and the types that do not map.

``docs/formats/avro-arrow.md`` is the table of types. From left to right it gives the Spark type of each Avro type; the
other way there are choices, and these are made here: a column that may be null is a union with null, and its default is
null; a timestamp has microseconds; a decimal is of bytes. Types without a counterpart are left out, and the report says
so; it also names the types that come back as others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from cortado.schema.model import AvroType, Schema

OPTIONS: Final = ("endpoint", "timeoutSeconds", "tlsCa", "tlsCert", "tlsKey", "token", "tokenFile")
"""Those of a connection."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """A type that does not map by itself: the field at ``path``, of type ``found``, has ``becomes`` on the other side,
    or is left out if that is None; ``why``."""

    path: str
    found: str
    becomes: str | None
    why: str


def avro_schema_of(columns: StructType, name: str = "Row") -> tuple[dict[str, Any], list[Finding]]:
    """Return the Avro record ``name`` that rows of these columns fit, as JSON, and the findings."""
    findings: list[Finding] = []
    fields = list(_fields_of(columns, name, "", findings))
    return {"type": "record", "name": name, "fields": fields}, findings


def spark_schema_of(schema: str | Mapping[str, Any], **options: Any) -> tuple[StructType, list[Finding]]:
    """Return the Spark columns of a table with this Avro schema, and the findings.

    ``schema`` is a record, as JSON or as its text; or the name of a subject, for its newest version, with the
    ``options`` of a connection (``endpoint`` ...). Raises InvalidSchema, NotFound, Unavailable.
    """
    from pyspark.sql.types import StructType

    from cortado.errors import Unsupported
    from pyspark_cortado.types import spark_schema

    parsed = _parsed(schema, options)
    findings: list[Finding] = []
    columns: list[Any] = []
    for field in parsed.record.fields:
        try:
            columns += spark_schema(parsed, (field.name,), parsed.record.name).fields
        except Unsupported as refused:
            findings.append(Finding(field.name, _shown(field.type), None, str(refused)))
        else:
            findings += _changes(field.type, columns[-1].dataType, field.name)
    return StructType(columns), findings


def create_table_like(df: DataFrame, table: str, key: Sequence[str], **options: Any) -> list[Finding]:
    """Make ``table`` (``database.table``) with the columns of ``df`` and this primary key, and its subject, of the same
    name; return the types that come back as others. The key's columns may not be null then.

    Raises Unsupported for a column that has no Avro type, NotFound for a key's column that is not there; AlreadyExists,
    IncompatibleSchema. ``options`` are those of a connection.
    """
    from cortado.errors import NotFound, Unsupported
    from pyspark_cortado.clients import open_client
    from pyspark_cortado.defaults import with_defaults
    from pyspark_cortado.options import given_options, read_options

    given = with_defaults(df.sparkSession, given_options(options, OPTIONS, "create_table_like()"))
    connection = read_options({**given, "table": table}).connection
    schema, findings = avro_schema_of(df.schema)
    for finding in findings:
        if finding.becomes is None:
            raise Unsupported(f"column {finding.path} of type {finding.found}", finding.why)
    for name in key:
        field = next((each for each in schema["fields"] if each["name"] == name), None)
        if field is None:
            raise NotFound("field", f"{name} in the DataFrame; there are {', '.join(df.columns)}")
        if "default" in field:
            field["type"] = field["type"][1]
            del field["default"]
    with open_client(connection) as client:
        client.schemas.register(table, schema)
        client.create_table(table, list(key))
    return findings


# --- from Spark to Avro --------------------------------------------------------------------------------------------


def _fields_of(columns: StructType, record: str, around: str, findings: list[Finding]) -> Iterator[dict[str, Any]]:
    """Yield the record's fields, as JSON has them."""
    taken: set[str] = set()
    for column in columns.fields:
        path, found = f"{around}{column.name}", column.dataType.simpleString()
        if not _NAME.fullmatch(column.name) or column.name in taken:
            why = (
                "its name is taken" if column.name in taken else "its name is not valid in Avro: letters, digits and _"
            )
            findings.append(Finding(path, found, None, why))
            continue
        taken.add(column.name)
        kind = _avro_type(column.dataType, f"{record}_{column.name}", path, findings)
        if kind is None:
            continue
        optional = {"type": ["null", kind], "default": None}
        yield {"name": column.name, **(optional if column.nullable and kind != "null" else {"type": kind})}


def _avro_type(kind: DataType, record: str, path: str, findings: list[Finding]) -> Any:
    """Return the Avro type as JSON; None, and a finding, if there is no such type. Records in it have this name."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    match kind:
        case StructType():
            fields = list(_fields_of(kind, record, f"{path}.", findings))
            return {"type": "record", "name": record, "fields": fields}
        case ArrayType():
            return _holding("array", "items", kind.elementType, kind.containsNull, (record, f"{path}[]", findings))
        case MapType() if isinstance(kind.keyType, StringType):
            return _holding("map", "values", kind.valueType, kind.valueContainsNull, (record, f"{path}{{}}", findings))
        case _:
            return _simple_type(kind, path, findings)


def _holding(outer: str, inner: str, kind: DataType, nullable: bool, place: tuple[str, str, list[Finding]]) -> Any:
    """Return an array's or a map's type."""
    of = _avro_type(kind, *place)
    if of is None:
        return None
    return {"type": outer, inner: ["null", of] if nullable and of != "null" else of}


def _simple_type(kind: DataType, path: str, findings: list[Finding]) -> Any:
    from pyspark.sql import types

    match kind:
        case types.ByteType() | types.ShortType():
            findings.append(Finding(path, kind.simpleString(), "int", "comes back as int"))
            return "int"
        case types.StringType() | types.VarcharType() | types.CharType():
            if kind != types.StringType():
                findings.append(Finding(path, kind.simpleString(), "string", "compares by code points, of any length"))
            return "string"
        case types.DecimalType():
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    for spark_type, avro in (
        (types.NullType, "null"),
        (types.BooleanType, "boolean"),
        (types.IntegerType, "int"),
        (types.LongType, "long"),
        (types.FloatType, "float"),
        (types.DoubleType, "double"),
        (types.BinaryType, "bytes"),
        (types.DateType, {"type": "int", "logicalType": "date"}),
        (types.TimestampType, {"type": "long", "logicalType": "timestamp-micros"}),
        (types.TimestampNTZType, {"type": "long", "logicalType": "local-timestamp-micros"}),
    ):
        if type(kind) is spark_type:
            return avro
    why = "keys of Avro's maps are strings" if isinstance(kind, types.MapType) else "no type of Avro holds it: cast it"
    findings.append(Finding(path, kind.simpleString(), None, why))
    return None


# --- from Avro to Spark --------------------------------------------------------------------------------------------


def _parsed(schema: str | Mapping[str, Any], options: Mapping[str, Any]) -> Schema:
    from cortado.errors import InvalidArgument
    from cortado.schema.parse import parse_document_schema
    from pyspark_cortado.clients import open_client
    from pyspark_cortado.options import given_options, read_options

    given = given_options(options, OPTIONS, "spark_schema_of()")
    if not isinstance(schema, str) or schema.lstrip().startswith(("{", "[")):
        if given:
            name = next(iter(given))
            raise InvalidArgument(f"option {name}", "is for a subject, and the schema itself is given", given[name])
        return parse_document_schema(schema if isinstance(schema, str) else json.dumps(dict(schema)))
    with open_client(read_options({**given, "table": "any.table"}).connection) as client:
        return client.schemas.get_by_id(client.schemas.get(schema).schema_id)


def _shown(kind: AvroType) -> str:
    from cortado.schema.model import Array, Enum, Fixed, Map, Primitive, Record, Union

    match kind:
        case Primitive(logical=None):
            return str(kind.kind)
        case Primitive(kind=base, logical=logical) if logical is not None:
            return f"{base} ({logical.kind})"
        case Fixed(logical=logical):
            return "fixed" if logical is None else f"fixed ({logical.kind})"
        case Enum():
            return "enum"
        case Array(items=items):
            return f"array of {_shown(items)}"
        case Map(values=values):
            return f"map of {_shown(values)}"
        case Union(branches=branches):
            return f"union of {', '.join(_shown(branch) for branch in branches)}"
        case Record(name=name):
            return f"record {name}"
    raise AssertionError(kind)


def _changes(kind: AvroType, column: DataType, path: str) -> Iterator[Finding]:
    """Yield the fields with a Spark type that says less than the Avro type does."""
    from cortado.schema.model import NULL, Array, Map, Record, Union

    match kind:
        case Record():
            for field in kind.fields:
                yield from _changes(field.type, column[field.name].dataType, f"{path}.{field.name}")  # type: ignore[index]
        case Array():
            yield from _changes(kind.items, column.elementType, f"{path}[]")  # type: ignore[attr-defined]
        case Map():
            yield from _changes(kind.values, column.valueType, f"{path}{{}}")  # type: ignore[attr-defined]
        case Union():
            members = [branch for branch in kind.branches if branch != NULL]
            if len(members) == 1:
                yield from _changes(members[0], column, path)
            elif members:
                why = "a member for each type, of which one is set"
                yield Finding(path, _shown(kind), column.simpleString(), why)
        case _:
            meaning = _MEANS.get(_shown(kind))
            if meaning is not None:
                yield Finding(path, _shown(kind), column.simpleString(), meaning)


_MEANS: Final = {
    "enum": "a text, which is checked when it is written",
    "fixed": "bytes, whose number is checked when they are written",
    "string (uuid)": "a text, which is checked when it is written",
    "fixed (uuid)": "a text, which is checked when it is written",
    "int (time-millis)": "microseconds since midnight, which must be whole milliseconds when they are written",
    "long (time-micros)": "microseconds since midnight",
    "long (timestamp-millis)": "microseconds, which must be whole milliseconds when they are written",
    "long (local-timestamp-millis)": "microseconds, which must be whole milliseconds when they are written",
    "long (timestamp-nanos)": "nanoseconds since 1970",
    "long (local-timestamp-nanos)": "nanoseconds since 1970",
    "fixed (duration)": "three counts, from 0 to 4294967295",
}
