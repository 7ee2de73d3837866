"""The plan of a directory's export, and its progress: ``export.checkpoint.json`` beside the parts."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.client import KeyRange
from cortado.store.client.values import At, Key, key_from_proto, key_to_proto
from cortado.store.keys.types import KeyPart
from cortado.store.transfer.files import PARTIAL, below, disk_errors, read_json, write_json
from cortado.store.transfer.formats import Encoding
from cortado.store.transfer.json_fields import Fields
from cortado.store.transfer.manifest import (
    CHECKPOINT,
    MANIFEST,
    FileEntry,
    check_different,
    read_file,
    read_manifest,
    read_timestamp,
    to_json,
)

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Part:
    """One file: a table's rows in ``[lower, upper)``, each bound a key message in base64; ``done`` once it is there."""

    path: str
    lower: str | None
    upper: str | None
    rows_about: int
    done: FileEntry | None = None

    @classmethod
    def of(cls, path: str, range: KeyRange, key: Sequence[KeyPart]) -> Part:
        return cls(path, _bound_text(range.start, key), _bound_text(range.end, key), range.rows)

    def bounds(self) -> tuple[Key | None, Key | None]:
        return _bound(self.lower), _bound(self.upper)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table's parts, in the order of their keys."""

    name: str
    table_id: int
    schema_version: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """All parts of an export. It holds the request, so that no other export goes on in its place."""

    cluster_id: str
    database: str
    only: tuple[str, ...] | None
    format: str
    compression: str
    filter: str | None
    columns: tuple[str, ...] | None
    timestamp: str = ""
    tables: tuple[TablePlan, ...] = ()

    @classmethod
    def asked(
        cls,
        cluster_id: str,
        database: str,
        tables: Sequence[str] | None,
        encoding: Encoding,
        filter: str | None,
        columns: tuple[str, ...] | None,
    ) -> ExportPlan:
        only = None if tables is None else tuple(tables)
        return cls(cluster_id, database, only, encoding.format.value, encoding.compression.value, filter, columns)

    def check_same(self, asked: ExportPlan, at: At) -> None:
        """Raises InvalidArgument if something else is asked for than this plan was made for."""
        for each in dataclasses.fields(self):
            if each.name in ("timestamp", "tables"):
                continue
            begun, wanted = getattr(self, each.name), getattr(asked, each.name)
            if begun != wanted:
                problem = f"began with {each.name} {begun!r}, and not with {wanted!r}: --force begins anew"
                raise InvalidArgument("--resume", problem)
        if at is not None and str(at) != self.timestamp:
            raise InvalidArgument("--resume", f"began at {self.timestamp}: leave --at away", str(at))

    def with_done(self, path: str, done: FileEntry) -> ExportPlan:
        """Return the plan after a part was written."""
        tables = tuple(
            replace(
                table,
                parts=tuple(replace(part, done=done) if part.path == path else part for part in table.parts),
            )
            for table in self.tables
        )
        return replace(self, tables=tables)

    def write(self, directory: Path) -> None:
        write_json(directory / CHECKPOINT, {"cortado_export_checkpoint": _VERSION, **to_json(self)})

    def remove(self, directory: Path) -> None:
        for name in (CHECKPOINT, CHECKPOINT + PARTIAL):
            with disk_errors(directory / name, "removed"):
                (directory / name).unlink(missing_ok=True)

    @classmethod
    def read(cls, directory: Path) -> ExportPlan:
        """Read a plan. Raises InvalidArgument for a checkpoint of another version, or a changed one."""
        fields = Fields(read_json(directory / CHECKPOINT, "checkpoint"), "checkpoint")
        if fields.whole("cortado_export_checkpoint") != _VERSION:
            fields.refuse("cortado_export_checkpoint", str(_VERSION))
        plan = cls(
            fields.text("cluster_id"),
            fields.text("database"),
            fields.maybe("only", fields.texts),
            fields.text("format"),
            fields.text("compression"),
            fields.maybe("filter", fields.text),
            fields.maybe("columns", fields.texts),
            read_timestamp(fields),
            fields.each("tables", _table_plan),
        )
        check_different("checkpoint", (part.path for table in plan.tables for part in table.parts))
        return plan


def _table_plan(fields: Fields) -> TablePlan:
    return TablePlan(
        fields.text("name"),
        fields.whole("table_id"),
        fields.whole("schema_version", 1),
        fields.each("parts", _part),
    )


def _part(fields: Fields) -> Part:
    def bound(name: str) -> str:
        text = fields.text(name)
        try:
            _bound(text)
        except (ValueError, ArithmeticError, DecodeError):
            fields.refuse(name, "a key as an export writes it")
        return text

    done = fields.maybe("done", lambda name: read_file(fields.inner(name)))
    path = fields.path("path")
    if done is not None and done.path != path:
        fields.refuse("done", f"about {path}")
    return Part(path, fields.maybe("lower", bound), fields.maybe("upper", bound), fields.whole("rows_about"), done)


# --- the directory -------------------------------------------------------------------------------------------------


def check_directory(directory: Path, *, resume: bool, force: bool) -> ExportPlan | None:
    """Return the plan of an export that was begun there and is to go on; None if an export begins. Raises
    InvalidArgument if it may not."""
    names = _names_in(directory)
    if not names or force:
        return None
    if CHECKPOINT in names:
        if resume:
            return ExportPlan.read(directory)
        problem = "holds an export that is not done: --resume goes on with it, --force begins anew"
        raise InvalidArgument("destination", problem, str(directory))
    if MANIFEST in names:
        raise InvalidArgument("destination", "holds an export already: --force replaces it", str(directory))
    raise InvalidArgument("destination", "must be empty, or hold an earlier export", str(directory))


def clear_directory(directory: Path, *, force: bool) -> None:
    """Make the directory. With ``force``, remove the files that an earlier export's manifest or checkpoint names."""
    with disk_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    names = _names_in(directory)
    if not names or not force:
        return
    paths: list[str] = []
    if MANIFEST in names:
        paths += [file.path for table in read_manifest(directory).tables for file in table.files]
    if CHECKPOINT in names:
        # An unreadable checkpoint names no files, and is replaced.
        with suppress(InvalidArgument):
            paths += [part.path for table in ExportPlan.read(directory).tables for part in table.parts]
    if not paths and not names & {MANIFEST, CHECKPOINT}:
        raise InvalidArgument("destination", "must be empty, or hold an earlier export", str(directory))
    # The manifest first: an export without one is not taken for whole.
    for path in [below(directory, each) for each in (MANIFEST, CHECKPOINT, *paths)]:
        with disk_errors(path, "removed"):
            path.unlink(missing_ok=True)
            path.with_name(path.name + PARTIAL).unlink(missing_ok=True)


def _names_in(directory: Path) -> set[str]:
    with disk_errors(directory, "read"):
        return {each.name for each in directory.iterdir()} if directory.exists() else set()


def _bound_text(bound: Key | None, key: Sequence[KeyPart]) -> str | None:
    if bound is None:
        return None
    return base64.b64encode(key_to_proto(bound, key, prefix=True).SerializeToString()).decode()


def _bound(text: str | None) -> Key | None:
    return None if text is None else key_from_proto(common_pb2.Key.FromString(base64.b64decode(text, validate=True)))
