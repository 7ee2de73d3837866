"""From a document's schema to the nodes that read it."""

from __future__ import annotations

from typing import Final

from cortado.schema.columnar.blocks import ItemShape
from cortado.schema.columnar.column import Ints
from cortado.schema.columnar.lanes import Lanes
from cortado.schema.columnar.nodes import (
    SKIP,
    ArrayNode,
    BooleanNode,
    BytesNode,
    FixedNode,
    FloatNode,
    MapNode,
    Node,
    NullableNode,
    NullNode,
    NumberNode,
    OpaqueNode,
    RecordNode,
    UnionNode,
)
from cortado.schema.columnar.skip import Skips, entry
from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.shape import Sizes, records_of, recursive_names

_STRING: Final = Primitive(Kind.STRING)


class Compiler:
    """Compiles a document's schema. A record within itself is laid out only if it is the document."""

    def __init__(self, root: Record) -> None:
        self._root = root
        # The document may be a part of a record that is met again inside it, under the same name.
        within = Union(tuple(field.type for field in root.fields))
        self._sizes = Sizes(within)
        self._skips = Skips(within)
        self._recursive = recursive_names(records_of(within))
        self._nodes: dict[AvroType, Node] = {}

    def document(self) -> RecordNode:
        """Return the node of the document itself."""
        return self._record(self._root, 0)

    def node(self, type_: AvroType) -> Node:
        """Return the node of a type within the document."""
        if type_ not in self._nodes:
            self._nodes[type_] = self._node(type_, 1)
        return self._nodes[type_]

    def is_opaque(self, record: Record) -> bool:
        """Return whether a record within the document is kept as bytes."""
        return record.name in self._recursive

    def _record(self, record: Record, depth: int) -> RecordNode:
        return RecordNode(record, [(each.name, self._node(each.type, depth + 1)) for each in record.fields])

    def _node(self, type_: AvroType, depth: int) -> Node:
        """Return the node of a type that has ``depth`` records, arrays and maps around it."""
        match type_:
            case Primitive(kind=Kind.NULL):
                return NullNode(type_)
            case Primitive(kind=Kind.INT | Kind.LONG) | Enum():
                return NumberNode(type_)
            case Primitive(kind=Kind.BOOLEAN):
                return BooleanNode(type_)
            case Primitive(kind=Kind.FLOAT | Kind.DOUBLE):
                return FloatNode(type_)
            case Primitive():
                return BytesNode(type_)
            case Fixed():
                return FixedNode(type_)
            case Array():
                return self._array(type_, depth)
            case Map():
                return self._map(type_, depth)
            case Union():
                return self._union(type_, depth)
            case Record() if self.is_opaque(type_):
                return OpaqueNode(type_, self._sizes.min_bytes(type_), self._skips.of(type_), depth)
            case Record():
                return self._record(type_, depth)

    def _union(self, union: Union, depth: int) -> Node:
        present = union.nullable
        if present is not None:
            return NullableNode(1 - union.branches.index(NULL), self._node(present, depth))
        return UnionNode(union, [self._node(each, depth) for each in union.branches])

    def _array(self, array: Array, depth: int) -> Node:
        item = self._node(array.items, depth + 1)
        shape = ItemShape(
            least=self._sizes.min_bytes(array.items),
            fixed=self._skips.fixed_bytes(array.items),
            is_number=isinstance(item, NumberNode),
            skip=lambda lanes, pos, end: item.read(lanes, pos, end, SKIP)[1],
            skip_one=self._skips.of(array.items),
            skip_all=self._skips.items(array.items),
            depth=depth,
        )
        return ArrayNode(array, item, shape)

    def _map(self, map_: Map, depth: int) -> Node:
        key = BytesNode(_STRING)
        value = self._node(map_.values, depth + 1)

        def skip(lanes: Lanes, pos: Ints, end: Ints) -> Ints:
            _, pos = key.read(lanes, pos, end, SKIP)
            return value.read(lanes, pos, end, SKIP)[1]

        shape = ItemShape(
            least=1 + self._sizes.min_bytes(map_.values),
            fixed=None,
            is_number=False,
            skip=skip,
            skip_one=entry(self._skips.of(map_.values)),
            skip_all=self._skips.entries(map_.values),
            depth=depth,
        )
        return MapNode(map_, key, value, shape)
