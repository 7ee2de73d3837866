"""From a declaration in JSON to a :class:`~cortado.schema.model.Schema`, strictly.

Choices that Avro leaves open are made here, always for the refusal that helps: a registered schema is kept for ever.

- An error names its place as a path in the declaration: ``Flight.fields[3].type.items``.
- A known logical type that does not fit is refused (:mod:`cortado.schema.logical`); so is one written beside a field's
  ``type`` instead of inside it, which Avro would ignore. Other unknown attributes stay in the text, without meaning.
- A default must be a value of its field's type; of a union, of any branch, and the first that it fits counts (as Avro
  1.12 says; before, it had to be the first branch).
- A field's alias must not be another field's name or alias: a reader would fill both from one value.
- Recursion is allowed if it can end: through a union, an array or a map. A record that holds itself is refused.
- An unqualified reference is looked up in the namespace around it, nowhere else. Nothing is defined twice.

Source: Apache Avro specification 1.12, *Schema Declaration*.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cortado.errors import InvalidSchema
from cortado.schema.canonical import canonical_form, sha256_of
from cortado.schema.defaults import check_defaults
from cortado.schema.json_text import parse_json, shown
from cortado.schema.limits import DEPTH_MAX, FIXED_BYTES_MAX, SCHEMA_BYTES_MAX, SCHEMA_FIELDS_MAX
from cortado.schema.logical import FIXED, known_logical, parse_logical
from cortado.schema.model import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Kind,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from cortado.schema.names import (
    NAME_RULE,
    branch_name,
    full_name,
    is_full_name,
    is_simple_name,
    namespace_of,
    simple_name,
)
from cortado.schema.shape import check_expansion, check_finite

_PRIMITIVES = {kind.value for kind in Kind}
_COMPLEX = {"record", "enum", "array", "map", "fixed"}
_ORDERS = ("ascending", "descending", "ignore")


def parse_schema(text: str) -> Schema:
    """Return the schema that ``text`` declares. Raises InvalidSchema with the path of the first mistake."""
    _check_text(text)
    declaration = parse_json(text, "", InvalidSchema)
    parser = _Parser()
    root_path = parser.root_path(declaration)
    root = parser.type_of(declaration, root_path, "", 1)
    check_finite(root)
    check_expansion(root, root_path)
    check_defaults(root, parser.defaults)
    canonical = canonical_form(root)
    return Schema(root, text, canonical, sha256_of(canonical))


def parse_document_schema(text: str) -> Schema:
    """Parse a schema for documents as :func:`parse_schema` does: its outermost type must be a record."""
    schema = parse_schema(text)
    if not isinstance(schema.root, Record):
        raise InvalidSchema("schema", "the schema of documents must be a record", branch_name(schema.root))
    return schema


def declaration_digest(text: str) -> bytes:
    """Return the SHA-256 of the declaration in ``text``, whatever its spaces, escapes and order of attributes. Raises
    InvalidSchema.

    Unlike a fingerprint, it differs if any part does: comments, and attributes that only other tools read.
    """
    plain = json.dumps(parse_json(text, "", InvalidSchema), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).digest()


def _check_text(text: str) -> None:
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidSchema("", f"the declaration is not valid Unicode at character {error.start}") from None
    if length > SCHEMA_BYTES_MAX:
        raise InvalidSchema("", f"the declaration has {length} bytes, the limit is {SCHEMA_BYTES_MAX}")


class _Parser:
    """One pass over a declaration. ``defaults`` wait for the end: a type that they name may not be complete before."""

    def __init__(self) -> None:
        self.named: dict[str, AvroType] = {}
        self.defaults: list[tuple[str, Field]] = []
        self.field_count = 0

    def root_path(self, declaration: Any) -> str:
        name = declaration.get("name") if isinstance(declaration, dict) else None
        return name.rpartition(".")[2] if isinstance(name, str) and is_full_name(name) else "schema"

    def type_of(self, declaration: Any, path: str, namespace: str, depth: int) -> AvroType:
        """``depth`` counts the containers that this type would be in, itself included."""
        if isinstance(declaration, str):
            return self._reference(declaration, path, namespace)
        if isinstance(declaration, list):
            return self._union(declaration, path, namespace, depth)
        if not isinstance(declaration, dict):
            raise InvalidSchema(path, "a type is a name, a union (an array) or an object", shown(declaration))
        name = declaration.get("type")
        if not isinstance(name, str):
            what = (
                "the object has no type" if name is None else "its type must be a name; write the type without a shell"
            )
            raise InvalidSchema(f"{path}.type", what, shown(declaration))
        if name in _COMPLEX:
            if depth > DEPTH_MAX and name in ("record", "array", "map"):
                raise InvalidSchema(path, f"nested deeper than {DEPTH_MAX} records, arrays and maps")
            return self._complex(name, declaration, path, namespace, depth)
        if name in _PRIMITIVES:
            return Primitive(Kind(name), parse_logical(declaration, name, path))
        if known_logical(declaration) is not None:
            raise InvalidSchema(f"{path}.logicalType", f"belongs where {name} is declared")
        return self._reference(name, f"{path}.type", namespace)

    def _reference(self, name: str, path: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return Primitive(Kind(name))
        found = self.named.get(full_name(name, namespace))
        if found is not None:
            return found
        hint = (
            "it needs an object with its attributes" if name in _COMPLEX else "no type of that name was declared before"
        )
        raise InvalidSchema(path, f"unknown type {shown(full_name(name, namespace))}: {hint}")

    def _complex(self, kind: str, declaration: dict[str, Any], path: str, namespace: str, depth: int) -> AvroType:
        if kind not in ("fixed",) and known_logical(declaration) is not None:
            parse_logical(declaration, kind, path)
        match kind:
            case "array":
                return Array(self.type_of(_required(declaration, "items", path), f"{path}.items", namespace, depth + 1))
            case "map":
                return Map(self.type_of(_required(declaration, "values", path), f"{path}.values", namespace, depth + 1))
            case "record":
                return self._record(declaration, path, namespace, depth)
            case "enum":
                return self._enum(declaration, path, namespace)
            case _:
                return self._fixed(declaration, path, namespace)

    def _union(self, declaration: list[Any], path: str, namespace: str, depth: int) -> Union:
        if not declaration:
            raise InvalidSchema(path, "a union needs a branch")
        branches: list[AvroType] = []
        names: set[str] = set()
        for position, each in enumerate(declaration):
            at = f"{path}[{position}]"
            branch = self.type_of(each, at, namespace, depth)
            if isinstance(branch, Union):
                raise InvalidSchema(at, "a union may not hold a union directly")
            if branch_name(branch) in names:
                raise InvalidSchema(at, f"the union has {branch_name(branch)} twice")
            names.add(branch_name(branch))
            branches.append(branch)
        return Union(tuple(branches))

    def _record(self, declaration: dict[str, Any], path: str, namespace: str, depth: int) -> Record:
        name = self._name(declaration, path, namespace)
        aliases = _type_aliases(declaration, path, name)
        record = Record(name, aliases, _doc(declaration, path))
        self.named[name] = record
        fields = _required(declaration, "fields", path)
        if not isinstance(fields, list):
            raise InvalidSchema(f"{path}.fields", "must be an array", shown(fields))
        self.field_count += len(fields)
        if self.field_count > SCHEMA_FIELDS_MAX:
            raise InvalidSchema(f"{path}.fields", f"the schema has more than {SCHEMA_FIELDS_MAX} fields")
        inner = namespace_of(name)
        record.fields = tuple(
            self._field(each, f"{path}.fields[{position}]", inner, depth + 1) for position, each in enumerate(fields)
        )
        _check_field_names(record, path)
        return record

    def _field(self, declaration: Any, path: str, namespace: str, depth: int) -> Field:
        if not isinstance(declaration, dict):
            raise InvalidSchema(path, "a field is an object", shown(declaration))
        name = _required(declaration, "name", path)
        if not isinstance(name, str) or not is_simple_name(name):
            raise InvalidSchema(f"{path}.name", NAME_RULE, shown(name))
        if known_logical(declaration) is not None:
            raise InvalidSchema(f"{path}.logicalType", 'belongs inside the type: {"type": ..., "logicalType": ...}')
        if "order" in declaration and declaration["order"] not in _ORDERS:
            raise InvalidSchema(f"{path}.order", f"must be one of {', '.join(_ORDERS)}", shown(declaration["order"]))
        aliases = _aliases(declaration, path)
        for position, alias in enumerate(aliases):
            if not is_simple_name(alias):
                raise InvalidSchema(f"{path}.aliases[{position}]", NAME_RULE, shown(alias))
        avro_type = self.type_of(_required(declaration, "type", path), f"{path}.type", namespace, depth)
        default = declaration.get("default", NO_DEFAULT)
        field = Field(name, avro_type, default, _without(aliases, name), _doc(declaration, path))
        if default is not NO_DEFAULT:
            self.defaults.append((f"{path}.default", field))
        return field

    def _enum(self, declaration: dict[str, Any], path: str, namespace: str) -> Enum:
        name = self._name(declaration, path, namespace)
        symbols = _required(declaration, "symbols", path)
        if not isinstance(symbols, list) or not symbols:
            raise InvalidSchema(f"{path}.symbols", "must be an array of at least one symbol", shown(symbols))
        seen: set[str] = set()
        for position, symbol in enumerate(symbols):
            if not isinstance(symbol, str) or not is_simple_name(symbol):
                raise InvalidSchema(f"{path}.symbols[{position}]", NAME_RULE, shown(symbol))
            if symbol in seen:
                raise InvalidSchema(f"{path}.symbols[{position}]", "the symbol is there twice", shown(symbol))
            seen.add(symbol)
        default = declaration.get("default")
        if default is not None and (not isinstance(default, str) or default not in seen):
            raise InvalidSchema(f"{path}.default", "must be one of the symbols", shown(default))
        enum = Enum(name, tuple(symbols), _type_aliases(declaration, path, name), default)
        self.named[name] = enum
        return enum

    def _fixed(self, declaration: dict[str, Any], path: str, namespace: str) -> Fixed:
        name = self._name(declaration, path, namespace)
        size = _required(declaration, "size", path)
        if type(size) is not int or not 1 <= size <= FIXED_BYTES_MAX:
            raise InvalidSchema(f"{path}.size", f"must be an integer from 1 to {FIXED_BYTES_MAX}", shown(size))
        logical = parse_logical(declaration, FIXED, path, size)
        fixed = Fixed(name, size, _type_aliases(declaration, path, name), logical)
        self.named[name] = fixed
        return fixed

    def _name(self, declaration: dict[str, Any], path: str, around: str) -> str:
        """Return the full name of a named type in the namespace ``around`` it."""
        name = _required(declaration, "name", path)
        if not isinstance(name, str) or not is_full_name(name):
            raise InvalidSchema(f"{path}.name", NAME_RULE, shown(name))
        namespace = declaration.get("namespace", around)
        if not isinstance(namespace, str) or (namespace and not is_full_name(namespace)):
            raise InvalidSchema(f"{path}.namespace", f"{NAME_RULE}, joined by dots", shown(namespace))
        full = full_name(name, namespace)
        if simple_name(full) in _PRIMITIVES:
            raise InvalidSchema(f"{path}.name", "is the name of one of Avro's primitive types", shown(full))
        if full in self.named:
            raise InvalidSchema(f"{path}.name", "a type of that name was declared before", shown(full))
        return full


def _required(declaration: dict[str, Any], name: str, path: str) -> Any:
    if name not in declaration:
        raise InvalidSchema(f"{path}.{name}", "is missing")
    return declaration[name]


def _doc(declaration: dict[str, Any], path: str) -> str:
    doc = declaration.get("doc")
    if doc is None:
        return ""
    if not isinstance(doc, str):
        raise InvalidSchema(f"{path}.doc", "must be a string", shown(doc))
    if not _is_unicode(doc):
        raise InvalidSchema(f"{path}.doc", "has half a surrogate pair, which is not Unicode")
    return doc


def _aliases(declaration: dict[str, Any], path: str) -> list[str]:
    aliases = declaration.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
        raise InvalidSchema(f"{path}.aliases", "must be an array of names", shown(aliases))
    return aliases


def _type_aliases(declaration: dict[str, Any], path: str, name: str) -> tuple[str, ...]:
    """Full names: an alias without dots is meant in the namespace of the type itself."""
    aliases = _aliases(declaration, path)
    for position, alias in enumerate(aliases):
        if not is_full_name(alias):
            raise InvalidSchema(f"{path}.aliases[{position}]", NAME_RULE, shown(alias))
    return _without([full_name(alias, namespace_of(name)) for alias in aliases], name)


def _without(aliases: list[str], name: str) -> tuple[str, ...]:
    return tuple(alias for alias in dict.fromkeys(aliases) if alias != name)


def _check_field_names(record: Record, path: str) -> None:
    names: set[str] = set()
    for position, field in enumerate(record.fields):
        if field.name in names:
            raise InvalidSchema(f"{path}.fields[{position}].name", "the record has the field twice", shown(field.name))
        names.add(field.name)
    for position, field in enumerate(record.fields):
        for alias in field.aliases:
            if alias in names:
                problem = f"{shown(alias)} names another field of the record, and both would be read from it"
                raise InvalidSchema(f"{path}.fields[{position}].aliases", problem)
            names.add(alias)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
