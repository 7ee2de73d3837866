"""One walk over a type, for all that is compiled from one: a type's result is made from the results of its parts.

::

    class Skips(Fold[Skip]):          one method per form of type
        def leaf(self, leaf): ...     primitive, fixed, enum
        def array(self, array, item): ...
        def map(self, map_, value): ...
        def union(self, union, branches): ...
        def record(self, record, fields): ...

    Skips().of(schema.root)

A record is made once, *before* its fields are: a recursive one then finds itself. So ``record`` may keep the
:class:`Fields` that it is given, or one of its views, but its result looks into them only when it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar, assert_never

from cortado.schema.model import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union

T = TypeVar("T")


class Fields(Generic[T]):
    """The results of a record's fields, in their order: the ``parts``, ``pairs`` of name and part, and parts
    ``by_name``.

    Three views, so that no user unpacks, in each document, parts that it does not need.
    """

    __slots__ = ("by_name", "pairs", "parts")

    def __init__(self) -> None:
        self.parts: list[T] = []
        self.pairs: list[tuple[str, T]] = []
        self.by_name: dict[str, T] = {}

    def fill(self, by_name: Mapping[str, T]) -> None:
        self.parts.extend(by_name.values())
        self.pairs.extend(by_name.items())
        self.by_name.update(by_name)


class Fold(ABC, Generic[T]):
    """Gives each type of one schema its ``T``. Types may share parts: a record's is made once, wherever it stands."""

    def __init__(self) -> None:
        self._records: dict[Record, T] = {}

    def of(self, avro_type: AvroType) -> T:
        match avro_type:
            case Primitive() | Fixed() | Enum():
                return self.leaf(avro_type)
            case Array(items=items):
                return self.array(avro_type, self.of(items))
            case Map(values=values):
                return self.map(avro_type, self.of(values))
            case Union(branches=branches):
                return self.union(avro_type, [self.of(branch) for branch in branches])
            case Record():
                if avro_type not in self._records:
                    fields: Fields[T] = Fields()
                    self._records[avro_type] = self.record(avro_type, fields)
                    fields.fill({field.name: self.of(field.type) for field in avro_type.fields})
                return self._records[avro_type]
            case _:
                assert_never(avro_type)

    @abstractmethod
    def leaf(self, leaf: Primitive | Fixed | Enum) -> T: ...

    @abstractmethod
    def array(self, array: Array, item: T) -> T: ...

    @abstractmethod
    def map(self, map_: Map, value: T) -> T: ...

    @abstractmethod
    def union(self, union: Union, branches: list[T]) -> T: ...

    @abstractmethod
    def record(self, record: Record, fields: Fields[T]) -> T: ...
