"""Rows that the table refuses, kept aside by the job instead of failing it (option ``badRowsPath``).

::

    a task's batches ── 1,000 rows at a time ──► stored, each row for itself
                                  │ refused: a null, a value that is out of range, a unique value that is taken, ...
                                  ▼
    <badRowsPath>/<job>-<partition>-<run>.jsonl     a line a row: its key, the error, the whole row
    <badRowsPath>/<job>.json                        written last, by the driver: how many there are, and in which files

A file is there once its task has ended well. If a task ran twice, the driver keeps the run that Spark counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from cortado.errors import CortadoError, InvalidArgument, InvalidDocument
from cortado.store.transfer.directory import Directory, directory_at

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import BulkResult
    from cortado.store.transfer.files import Sink

AT_ONCE: Final = 1_000
"""Rows of one load: as many refused rows as a load names."""

Load = Callable[[Sequence["pa.RecordBatch"]], "BulkResult"]


def check_path(path: str) -> None:
    """Before the job: the directory is made if it is not there. Raises InvalidArgument, Unsupported."""
    if "\0" in path:
        raise InvalidArgument("option badRowsPath", "must hold no null character", repr(path))
    try:
        directory = directory_at(path)
        directory.make()
        directory.names()
    except InvalidArgument as refused:
        raise InvalidArgument("option badRowsPath", refused.problem, path) from refused


def new_job() -> str:
    """Return a name for the files of a job."""
    return os.urandom(6).hex()


class BadRows:
    """The refused rows of one run of a task. A context manager: after an error its file is not there."""

    def __init__(self, path: str, name: str, key_fields: Sequence[str]) -> None:
        self.name = name
        self.count = 0
        self._path = path
        self._key_fields = key_fields
        self._stack = ExitStack()
        self._sink: Sink | None = None

    def __enter__(self) -> BadRows:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def store(self, batches: Iterator[pa.RecordBatch], load: Load) -> int:
        """Store rows, and return how many were stored; the others are in the file."""
        return sum(self._store(each, load) for batch in batches for each in _slices(batch))

    def _store(self, rows: pa.RecordBatch, load: Load) -> int:
        while rows.num_rows:
            try:
                result = load([rows])
            except InvalidDocument as bad:
                # Found while the rows were encoded: nothing of them was sent.
                if not 0 <= bad.row < rows.num_rows:
                    raise
                self._add(rows, bad.row, bad)
                rows = _without(rows, bad.row)
                continue
            for refused in result.errors:
                self._add(rows, refused.row, refused.error)
            return result.written
        return 0

    def _add(self, rows: pa.RecordBatch, place: int, error: CortadoError) -> None:
        if self._sink is None:
            directory = directory_at(self._path)
            directory.make()
            self._sink = self._stack.enter_context(directory.writing(self.name))
        (row,) = rows.slice(place, 1).to_pylist()
        line = {
            "key": {name: row.get(name) for name in self._key_fields},
            "error": type(error).__name__,
            "message": error.message(),
            "row": row,
        }
        self._sink.write(json.dumps(line, default=_shown, ensure_ascii=False).encode() + b"\n")
        self.count += 1


def sum_up(path: str, job: str, table: str, written: int, refused: Mapping[str, int]) -> None:
    """At the job's end: ``refused`` rows by the files of the runs that count. The files of other runs are removed."""
    directory = directory_at(path)
    for name in _files(directory, job):
        if name not in refused:
            directory.remove(name)
    if refused:
        summary = {"table": table, "written": written, "refused": sum(refused.values()), "files": sorted(refused)}
        with directory.writing(f"{job}.json") as sink:
            sink.write(json.dumps(summary, indent=2).encode() + b"\n")


def remove_all(path: str, job: str) -> None:
    """Remove the files of a job that failed."""
    directory = directory_at(path)
    for name in _files(directory, job):
        directory.remove(name)


def _files(directory: Directory, job: str) -> list[str]:
    return [name for name in directory.names() or () if name.startswith(f"{job}-") and name.endswith(".jsonl")]


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, AT_ONCE):
        yield batch.slice(start, AT_ONCE)


def _without(rows: pa.RecordBatch, place: int) -> pa.RecordBatch:
    import pyarrow as pa

    kept = [each for each in range(rows.num_rows) if each != place]
    return rows.take(pa.array(kept, pa.int64()))


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)
