"""Rows on their way in: the chunks that every reader yields, the target that it needs to know, and bad rows.

A *place* is the number by which people find a row in its file, from 1 on: its line in JSON lines and CSV, its number
among the rows of an Avro or a Parquet file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.json_format import from_json_value, to_json_value
from cortado.schema.json_text import json_text
from cortado.schema.model import Schema
from cortado.schema.text_format import from_texts

_CHUNK_ROWS: Final = 1_000
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was not stored, and why. ``text`` is the row as JSON to be mended, None if it cannot be written."""

    file: str
    place: int
    error: CortadoError
    text: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """The form of a target's rows: a table's schema and its id; and ids of versions with bytes that may be sent as they
    are.

    ``version_ids`` has them by fingerprint. ``schema_id`` is 0 if a table is still to be made.
    """

    name: str
    schema_id: int
    schema: Schema
    version_ids: dict[bytes, int]

    def body_of(self, value: Any) -> bytes:
        """Return the body of a row in JSON. Raises InvalidDocument, TooLarge."""
        return encode_document(self.schema, from_json_value(self.schema, value))

    def body_of_texts(self, texts: Mapping[str, str | None]) -> bytes:
        """Return the body of a row with these texts of its fields. Raises InvalidDocument, TooLarge."""
        return encode_document(self.schema, from_texts(self.schema, texts))

    def json_of_texts(self, texts: Mapping[str, str | None]) -> Any:
        """Return a row of texts as JSON; a text that is not of its field's type stands as it is."""
        return {name: self._json_of_text(name, text) for name, text in texts.items()}

    def _json_of_text(self, name: str, text: str | None) -> Any:
        with suppress(CortadoError):
            return to_json_value(self.schema, from_texts(self.schema, {name: text}))[name]
        return text

    def json_of(self, row: dict[str, Any], schema: Schema, /) -> Any:
        """Return a row of ``schema`` as JSON."""
        return to_json_value(schema, row)

    def text_of(self, schema: Schema, body: bytes) -> str:
        """Return a row as JSON, out of the body that ``schema`` wrote."""
        return json_text(self.json_of(decode_document(schema, body), schema))


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Rows of one file that follow each other: Avro bodies, and the rows among them that cannot be ones.

    ``data`` holds the bodies end to end, ``lengths`` 4 bytes for each (little-endian). ``places`` are theirs; ``last``
    is that of the last row that was read, good or bad. ``text_of`` gives a body, by its number from 0, as JSON.
    """

    schema_id: int
    data: bytes
    lengths: bytes
    places: Sequence[int]
    last: int
    text_of: Callable[[int, bytes], str | None]
    refused: list[BadRow] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lengths) // 4

    def bodies(self) -> Iterator[bytes]:
        """Yield the bodies, one by one."""
        start = 0
        for (length,) in struct.iter_unpack("<I", self.lengths):
            yield self.data[start : start + length]
            start += length

    def text(self, row: int) -> str | None:
        """Return the row of a body as JSON; None if it cannot be written."""
        start = sum(struct.unpack_from(f"<{row}I", self.lengths))
        (length,) = struct.unpack_from("<I", self.lengths, 4 * row)
        return self.text_of(row, self.data[start : start + length])


class Collected:
    """Rows of a text file that become one chunk. The text of a row is asked for only if it is bad."""

    def __init__(self, name: str, target: Target) -> None:
        self._name = name
        self._target = target
        self._texts: list[Callable[[], str | None]] = []
        self._bodies: list[bytes] = []
        self._places: list[int] = []
        self._refused: list[BadRow] = []
        self._bytes = self._last = 0

    @property
    def is_full(self) -> bool:
        return len(self._bodies) + len(self._refused) >= _CHUNK_ROWS or self._bytes >= _CHUNK_BYTES

    def add(self, place: int, size: int, body_of: Callable[[], bytes], text_of: Callable[[], str | None]) -> None:
        """A row of ``size`` bytes; it is refused if its body cannot be made."""
        try:
            body = body_of()
        except CortadoError as error:
            self.refuse(place, size, error, text_of())
            return
        self._last = place
        self._bytes += size
        self._texts.append(text_of)
        self._bodies.append(body)
        self._places.append(place)

    def refuse(self, place: int, size: int, error: CortadoError, text: str | None = None) -> None:
        """A row that cannot have a body."""
        self._last = place
        self._bytes += size
        self._refused.append(BadRow(self._name, place, error, text))

    def chunk(self) -> RowChunk:
        """Return the chunk of all of them."""
        texts = self._texts
        return RowChunk(
            self._target.schema_id,
            b"".join(self._bodies),
            packed_lengths([len(body) for body in self._bodies]),
            self._places,
            self._last,
            lambda row, _body: texts[row](),
            self._refused,
        )


def packed_lengths(lengths: Sequence[int]) -> bytes:
    """Lengths in bytes as a chunk has them."""
    return struct.pack(f"<{len(lengths)}I", *lengths)
