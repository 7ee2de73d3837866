"""A class that is derived from any schema fits it, and its instances are written as the dicts that they stand for."""

from __future__ import annotations

import dataclasses
import enum
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal, Optional, TypedDict, Union
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import NULL, Array, AvroType, Enum, Map, Primitive, Record, Schema
from cortado.schema.model import Union as AvroUnion
from cortado.schema.parse import parse_schema
from cortado.schema.values import Duration
from cortado.store.client.document_types import DocumentType
from support.avro_strategies import declaration_text, document_declarations, values_of

PLAIN = {"null": None, "boolean": bool, "int": int, "long": int, "float": float, "double": float, "string": str}
LOGICAL = {"decimal": Decimal, "uuid": UUID, "date": date, "duration": Duration}

schemas = document_declarations(recursive=False).map(lambda declaration: parse_schema(declaration_text(declaration)))


class Derived:
    """Classes for the types of one schema; ``draw`` chooses between the kinds of class that will do."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._known: dict[str, Any] = {}

    def hint(self, avro: AvroType) -> Any:
        match avro:
            case Array(items=items):
                return list[self.hint(items)] if self._draw(st.booleans()) else tuple[self.hint(items), ...]  # type: ignore[misc]
            case Map(values=values):
                return dict[str, self.hint(values)]  # type: ignore[misc]
            case Record(name=name):
                return self._once(name, lambda: self.record(avro))
            case Enum(name=name):
                return self._once(name, lambda: self._symbols(avro))
            case AvroUnion(branches=branches):
                return Optional[Union[tuple(self.hint(each) for each in branches)]]  # noqa: UP007, UP045 - of a tuple
        if avro.logical is not None:
            kind = str(avro.logical.kind)
            if "nanos" in kind:
                return int
            return LOGICAL.get(kind) or (time if kind.startswith("time-") else datetime)
        return PLAIN.get(avro.kind, bytes) if isinstance(avro, Primitive) else bytes

    def record(self, avro: Record) -> Any:
        fields = [(each.name, self.hint(each.type)) for each in avro.fields]
        if self._draw(st.booleans()):
            return TypedDict(avro.name, dict(fields))  # type: ignore[operator]
        return dataclasses.make_dataclass(avro.name, fields)

    def _symbols(self, avro: Enum) -> Any:
        kinds = [str, Literal[avro.symbols], enum.Enum(avro.name, [(each, each) for each in avro.symbols])]
        return self._draw(st.sampled_from(kinds))

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._known:
            self._known[name] = make()
        return self._known[name]


@st.composite
def typed_documents(draw: st.DrawFn) -> tuple[Schema, Any, dict[str, Any]]:
    schema = draw(schemas)
    return schema, Derived(draw).record(schema.record), draw(values_of(schema.root))


@given(typed_documents())
def test_a_document_is_an_instance_and_back_without_loss(typed: tuple[Schema, Any, dict[str, Any]]) -> None:
    schema, cls, value = typed
    documents = DocumentType(cls, schema)
    body = encode_document(schema, value)
    instance = documents.from_document(decode_document(schema, body))
    assert isinstance(instance, cls) if dataclasses.is_dataclass(cls) else isinstance(instance, dict)
    assert encode_document(schema, documents.to_document(instance)) == body


def _are_bytes(avro: AvroType) -> bool:
    """Return whether all values are bytes; those of a union if those of each branch are."""
    branches = avro.branches if isinstance(avro, AvroUnion) else [avro]
    return all(Derived(lambda _: True).hint(each) is bytes for each in branches)


@given(typed_documents())
def test_nullable_fields_of_a_class_that_says_otherwise_are_named(typed: tuple[Schema, Any, dict[str, Any]]) -> None:
    schema, _, _ = typed
    hints = {each.name: each.type for each in schema.record.fields}
    strict = dataclasses.make_dataclass(
        "Strict", [(name, object if each == NULL else bytes) for name, each in hints.items()]
    )
    wrong = [name for name, each in hints.items() if each != NULL and not _are_bytes(each)]
    try:
        DocumentType(strict, schema)
        told = []
    except Exception as refused:
        told = [str(refused), *getattr(refused, "__notes__", [])]
    assert len(told) == len(wrong)
    assert all(f"Strict.{name}:" in text for name, text in zip(wrong, told, strict=True))
