"""When two declarations are the same: canonical forms and fingerprints.

Two forms, for two questions. Avro's *Parsing Canonical Form* keeps what a writer's bytes depend on; its fingerprints
are what other Avro tools compute. Cortado's *canonical form* adds what changes how bytes are understood: logical types,
defaults, aliases, an enum's default. Declarations with the same canonical form read and write alike, so registering
one after the other gives the same version. Only comments (``doc``), sort orders and unknown attributes are left out.

Both are JSON without spaces: full names, attributes in a fixed order, a named type in full where it comes first and by
its name after that. Defaults are in normal form (:mod:`cortado.schema.defaults`); a type's aliases are full and sorted,
a field's stay in order.
Source: Apache Avro specification 1.12, *Transforming into Parsing Canonical Form*, *Schema Fingerprints*.
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
    return _text(_Form(extended=False).of(schema.root))


def canonical_form(root: AvroType) -> str:
    """Cortado's canonical form."""
    return _text(_Form(extended=True).of(root))


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
    """The CRC-64-AVRO of ``data``."""
    crc, table = _CRC64_EMPTY, _crc64_table()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


class _Form:
    """Builds the JSON of a form; ``extended`` is Cortado's."""

    def __init__(self, *, extended: bool) -> None:
        self.extended = extended
        self.seen: set[str] = set()

    def of(self, avro_type: AvroType) -> Any:
        match avro_type:
            case Primitive(kind=kind, logical=logical):
                return {"type": kind.value, **self._logical(logical)} if self.extended and logical else kind.value
            case Array(items=items):
                return {"type": "array", "items": self.of(items)}
            case Map(values=values):
                return {"type": "map", "values": self.of(values)}
            case Union(branches=branches):
                return [self.of(branch) for branch in branches]
            case Record() | Enum() | Fixed():
                if avro_type.name in self.seen:
                    return avro_type.name
                self.seen.add(avro_type.name)
                return self._named(avro_type)
            case _:
                assert_never(avro_type)

    def _named(self, named: Record | Enum | Fixed) -> dict[str, Any]:
        form: dict[str, Any] = {"name": named.name}
        match named:
            case Record(fields=fields):
                form |= {"type": "record", "fields": [self._field(field) for field in fields]}
            case Enum(symbols=symbols, default=default):
                form |= {"type": "enum", "symbols": symbols}
                if self.extended and default is not None:
                    form["default"] = default
            case Fixed(size=size, logical=logical):
                form |= {"type": "fixed", "size": size}
                form |= self._logical(logical) if self.extended else {}
            case _:
                assert_never(named)
        return form | self._aliases(sorted(named.aliases))

    def _field(self, field: Field) -> dict[str, Any]:
        form = {"name": field.name, "type": self.of(field.type)}
        if self.extended and field.default is not NO_DEFAULT:
            form["default"] = normal_default(field.type, field.default)
        # Not sorted: where a writer has fields of two of the names, the first alias is the one that is read.
        return form | self._aliases(field.aliases)

    def _aliases(self, aliases: Sequence[str]) -> dict[str, Any]:
        return {"aliases": list(aliases)} if self.extended and aliases else {}

    def _logical(self, logical: Logical | None) -> dict[str, Any]:
        if logical is None:
            return {}
        if logical.kind is LogicalKind.DECIMAL:
            return {"logicalType": logical.kind.value, "precision": logical.precision, "scale": logical.scale}
        return {"logicalType": logical.kind.value}


def _text(form: Any) -> str:
    return json.dumps(form, separators=(",", ":"), ensure_ascii=False)
