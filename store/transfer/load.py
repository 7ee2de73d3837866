"""Files into tables or namespaces, row by row accounted for.

::

    file ── reader ── chunks ──┬── segment: at most 50,000 rows ──► store ──► acknowledged, or refused one by one
                               │                                                        │
                               └── rows that are none ──────────► kept aside ◄──────────┘
                                                                      │
                                    checkpoint: everything before here is done

A segment is one run of the bulk stream. It is drained before its checkpoint is written, so that the checkpoint is true.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from cortado.errors import CortadoError, InvalidArgument
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.transfer.avro_source import avro_chunks
from cortado.store.transfer.bad_rows import BadRows
from cortado.store.transfer.checkpoint import Checkpoint, Position
from cortado.store.transfer.csv_source import csv_chunks
from cortado.store.transfer.files import disk_errors, open_to_read
from cortado.store.transfer.formats import Format
from cortado.store.transfer.json_source import json_chunks
from cortado.store.transfer.parquet_source import parquet_chunks
from cortado.store.transfer.progress import Progress, Report, silent
from cortado.store.transfer.rows import BadRow, RowChunk, Target
from cortado.store.transfer.stores import REFUSED_KEPT_MAX, Store, Stored

SEGMENT_ROWS: Final = 50_000
SEGMENT_BYTES: Final = 64 << 20
BAD_MAX: Final = 1_000
"""An import ends after this many bad rows, unless more are allowed: most likely all of them are."""

Reader: TypeAlias = Callable[[BinaryIO, str, Target, int], Iterator[RowChunk]]
_READERS: Final[dict[Format, Reader]] = {
    Format.JSONL: json_chunks,
    Format.CSV: csv_chunks,
    Format.AVRO: avro_chunks,
    Format.PARQUET: parquet_chunks,
}


@dataclass(frozen=True, slots=True)
class Input:
    """A file to read: at ``path``, or else an open ``stream``. ``null_text`` is how CSV says null."""

    name: str
    format: Format
    path: Path | None = None
    stream: BinaryIO | None = None
    null_text: str = ""

    @property
    def bytes(self) -> int:
        """How long it is; 0 for a stream."""
        if self.path is None:
            return 0
        with disk_errors(self.path, "read"):
            return self.path.stat().st_size

    def chunks(self, file: BinaryIO, target: Target, rows_skipped: int) -> Iterator[RowChunk]:
        """Return the rows of the opened file, behind those at places up to ``rows_skipped``."""
        read = _READERS[self.format]
        if self.format is Format.CSV:
            read = partial(csv_chunks, null_text=self.null_text)
        return read(file, self.name, target, rows_skipped)

    def open(self) -> BinaryIO:
        """Raises InvalidArgument."""
        if self.path is None:
            assert self.stream is not None
            return self.stream
        return open_to_read(self.path)


@dataclass(frozen=True, slots=True)
class Task:
    """A file, what its rows are written as, and where they go."""

    input: Input
    target: Target
    store: Store


@dataclass(slots=True)
class Loaded:
    """The counts of all rows, with those of the runs before a resume. ``first_error`` is that of the first bad row."""

    written: int = 0
    refused: int = 0
    first_error: CortadoError | None = None
    ts: Timestamp = ZERO


class Load:
    """One import. ``tell`` is called with each bad row; ``bad_rows`` keeps them, ``checkpoint`` how far it is.

    ``position`` is the content of the checkpoint: everything before it is done. ``loaded`` counts while it goes on.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        bad_max: int = BAD_MAX,
        bad_rows: BadRows | None = None,
        checkpoint: Checkpoint | None = None,
        begin: Position | None = None,
        tell: Callable[[BadRow], None] | None = None,
        report: Report = silent,
        loaded: Loaded | None = None,
    ) -> None:
        self._tasks = tasks
        self._bad_max = bad_max
        self._bad_rows = bad_rows
        self._checkpoint = checkpoint
        self.position = begin or Position()
        self._tell = tell
        self._report = report
        self._total = sum(task.input.bytes for task in tasks)
        # The store forgets the reasons of more refusals than that.
        self._segment_rows = SEGMENT_ROWS if bad_max <= REFUSED_KEPT_MAX else REFUSED_KEPT_MAX
        # The caller's, which counts the stored rows also if an error ends the load.
        self.loaded = Loaded() if loaded is None else loaded
        self.loaded.written, self.loaded.refused = self.position.written, self.position.refused

    def run(self) -> Loaded:
        """Raises InvalidArgument for a file that cannot be read, or too many bad rows, and what ends a bulk load."""
        for task in self._tasks[self.position.file :]:
            self._file(task)
            self.position = self.position.next_file()
            self._save()
        if self._checkpoint is not None:
            self._checkpoint.remove()
        return self.loaded

    def _file(self, task: Task) -> None:
        before = sum(each.input.bytes for each in self._tasks[: self.position.file])
        with closing(task.input.open()) as file:
            chunks = task.input.chunks(file, task.target, self.position.row)
            while True:
                segment = self._segment(task, chunks, before, file)
                stored = task.store.store(segment.take())
                self._account(segment, stored)
                if segment.error is not None:
                    raise segment.error
                if segment.is_last:
                    return

    def _segment(self, task: Task, chunks: Iterator[RowChunk], before: int, file: BinaryIO) -> _Segment:
        def show(rows: int) -> None:
            done = self.loaded.written + self.loaded.refused + rows
            at = file.tell() if task.input.bytes else 0
            self._report(Progress(task.target.name, done, self.loaded.refused, before + at, self._total))

        return _Segment(task.input.name, chunks, self._segment_rows, self._bad_max, show)

    def _account(self, segment: _Segment, stored: Stored) -> None:
        loaded = self.loaded
        loaded.ts = max(loaded.ts, stored.ts)
        bad = sorted([*segment.refused, *map(segment.bad_row, stored.errors)], key=lambda each: each.place)
        for each in bad:
            loaded.first_error = loaded.first_error or each.error
            if self._tell is not None:
                self._tell(each)
            if self._bad_rows is not None:
                self._bad_rows.add(each)
        refused = len(segment.refused) + stored.refused
        loaded.written += stored.written
        loaded.refused += refused
        sizes = (0, 0) if self._bad_rows is None else self._bad_rows.sync()
        if loaded.refused > self._bad_max:
            raise InvalidArgument("--max-bad", f"more than {self._bad_max} rows are bad", str(loaded.refused))
        self.position = self.position.after(segment.last or self.position.row, stored.written, refused, sizes)
        if not segment.is_last:
            self._save()

    def _save(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.save(self.position)


@dataclass(slots=True)
class _Segment:
    """Chunks that are sent by one run of the store, kept to find a refused row's text again."""

    file: str
    source: Iterator[RowChunk]
    rows_max: int
    bad_max: int
    show: Callable[[int], None]
    refused: list[BadRow] = field(default_factory=list)
    is_last: bool = False
    last: int = 0
    error: CortadoError | None = None
    _chunks: list[RowChunk] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    def take(self) -> Iterator[RowChunk]:
        """Yield the next chunks. An error that ends the reading waits in ``error``, so that the rows under way are
        waited for."""
        rows = size = 0
        while rows + len(self.refused) < self.rows_max and size < SEGMENT_BYTES and len(self.refused) <= self.bad_max:
            try:
                chunk = next(self.source, None)
            except CortadoError as error:
                self.error = error
                return
            if chunk is None:
                self.is_last = True
                return
            self.refused += chunk.refused
            self.last = chunk.last or self.last
            self._starts.append(rows)
            self._chunks.append(chunk)
            rows += len(chunk)
            size += len(chunk.data)
            if len(chunk):
                yield chunk
            self.show(rows + len(self.refused))

    def bad_row(self, refused: tuple[int, CortadoError]) -> BadRow:
        """Return a row that the store refused, with what stood in its file."""
        row, error = refused
        which = bisect_right(self._starts, row) - 1
        # Chunks without a body begin where the next one does, and come before it.
        chunk, place = self._chunks[which], row - self._starts[which]
        return BadRow(self.file, chunk.places[place], error, chunk.text(place))
