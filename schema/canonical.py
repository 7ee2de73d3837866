"""When two declarations are the same: canonical forms and fingerprints.

Two forms, for two questions. Avro's *Parsing Canonical Form* keeps all that a writer's bytes depend on; other Avro
tools compute the same fingerprints. Cortado's *canonical form* adds all that changes how bytes are understood: logical
types, defaults, aliases, an enum's default. Declarations with the same canonical form read and write alike, so
registering one after the other gives the same version. Only comments (``doc``), sort orders and unknown attributes are
left out.

Both are JSON without spaces: full names, attributes in a fixed order, a named type in full at its first use and by its
name after that. Defaults are in normal form (:mod:`cortado.schema.defaults`); a type's aliases are full and sorted, a
field's stay in order. Source: Apache Avro specification 1.12, *Transforming into Parsing Canonical Form*, *Schema
Fingerprints*.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, assert_never

from cortado.schema.defaults import normal_default
from cortado.schema.model import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    LogicalKind,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)


def parsing_canonical_form(schema: Schema) -> str:
    """Avro's Parsing Canonical Form."""
    return _text(Form().of(schema.root))


def canonical_form(root: AvroType) -> str:
    """Cortado's canonical form."""
    return _text(_CanonicalForm().of(root))


def sha256_of(canonical: str) -> bytes:
    """SHA-256 of a canonical form: 32 bytes."""
    return hashlib.sha256(canonical.encode()).digest()


def sha256_fingerprint(schema: Schema) -> bytes:
    """Avro's SHA-256 fingerprint, of the Parsing Canonical Form."""
    return sha256_of(parsing_canonical_form(schema))


def crc64_fingerprint(schema: Schema) -> int:
    """Avro's CRC-64-AVRO (Rabin) fingerprint, of the Parsing Canonical Form, as an unsigned number."""
    return crc64_avro(parsing_canonical_form(schema).encode())


_CRC64_EMPTY: Final = 0xC15D213AA4D7A795


@cache
def _crc64_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CRC64_EMPTY if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


def crc64_avro(data: bytes) -> int:
    """Return the CRC-64-AVRO of ``data``."""
    crc, table = _CRC64_EMPTY, _crc64_table()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


class Form:
    """Builds the JSON of types.

    This one is Avro's Parsing Canonical Form. Other forms override the methods below :meth:`of`, each of which returns
    attributes of a declaration.
    """

    def __init__(self) -> None:
        self._declared: set[str] = set()

    def of(self, avro_type: AvroType) -> Any:
        match avro_type:
            case Primitive(kind=kind, logical=logical):
                attributes = self.logical(logical)
                return {"type": kind.value, **attributes} if attributes else kind.value
            case Array(items=items):
                return {"type": "array", "items": self.of(items)}
            case Map(values=values):
                return {"type": "map", "values": self.of(values)}
            case Union(branches=branches):
                return [self.of(branch) for branch in branches]
            case Record() | Enum() | Fixed():
                if avro_type.name in self._declared:
                    return avro_type.name
                self._declared.add(avro_type.name)
                return self.name(avro_type.name) | self._named(avro_type) | self.aliases(sorted(avro_type.aliases))
            case _:
                assert_never(avro_type)

    def _named(self, named: Record | Enum | Fixed) -> dict[str, Any]:
        match named:
            case Record(fields=fields):
                return {"type": "record", "fields": [self.field(field) for field in fields]}
            case Enum(symbols=symbols):
                return {"type": "enum", "symbols": symbols, **self.symbol_default(named)}
            case Fixed(size=size, logical=logical):
                return {"type": "fixed", "size": size, **self.logical(logical)}
            case _:
                assert_never(named)

    def field(self, field: Field) -> dict[str, Any]:
        # Not sorted: if a writer has fields of two of the names, the first alias is read.
        return {"name": field.name, "type": self.of(field.type), **self.default(field), **self.aliases(field.aliases)}

    def name(self, full_name: str) -> dict[str, Any]:
        return {"name": full_name}

    def logical(self, logical: Logical | None) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def symbol_default(self, enum: Enum) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def default(self, field: Field) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def aliases(self, aliases: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        return {}


class MeaningForm(Form):
    """Adds logical types and defaults, these as they were declared."""

    def logical(self, logical: Logical | None) -> dict[str, Any]:
        if logical is None:
            return {}
        if logical.kind is LogicalKind.DECIMAL:
            return {"logicalType": logical.kind.value, "precision": logical.precision, "scale": logical.scale}
        return {"logicalType": logical.kind.value}

    def symbol_default(self, enum: Enum) -> dict[str, Any]:
        return {} if enum.default is None else {"default": enum.default}

    def default(self, field: Field) -> dict[str, Any]:
        return {} if field.default is NO_DEFAULT else {"default": field.default}


class _CanonicalForm(MeaningForm):
    """Cortado's: adds aliases, and has defaults in normal form."""

    def default(self, field: Field) -> dict[str, Any]:
        return {} if field.default is NO_DEFAULT else {"default": normal_default(field.type, field.default)}

    def aliases(self, aliases: Sequence[str]) -> dict[str, Any]:
        return {"aliases": list(aliases)} if aliases else {}


def _text(form: Any) -> str:
    return json.dumps(form, separators=(",", ":"), ensure_ascii=False)
