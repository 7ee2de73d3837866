"""One import, from its request to its result.

Every error of the request is found before a change is made: names, files, formats, an earlier checkpoint, checksums.
Then tables are made if requested, and the rows go in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from cortado.errors import InvalidArgument, NotFound
from cortado.store.client import Client, Index
from cortado.store.client.put_mode import PutMode, whole_rows
from cortado.store.client.values import Expires
from cortado.store.keys.names import check_database, check_namespace, split_table_name
from cortado.store.transfer.bad_rows import BadRows
from cortado.store.transfer.checkpoint import SUFFIX, Checkpoint, Position, files_identity
from cortado.store.transfer.files import below, is_read_once
from cortado.store.transfer.formats import format_to_read, null_text_of
from cortado.store.transfer.load import BAD_MAX, Input, Load, Loaded, Task
from cortado.store.transfer.manifest import MANIFEST
from cortado.store.transfer.pairs import pair_target
from cortado.store.transfer.progress import Report
from cortado.store.transfer.restore import Export, make_table_of, rehearsal_tasks, restore_tasks
from cortado.store.transfer.rows import BadRow, Target
from cortado.store.transfer.stores import Nowhere, PairStore, Store, TableStore
from cortado.store.transfer.tables import find_table, future_target, make_table, schema_in_file, table_target

STDIN: Final = "-"
NAMESPACE_PREFIX: Final = "kv:"


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The request for an import. ``target`` is ``database.table``, a database, or ``kv:namespace``; a file is a path or
    ``-``.

    ``create`` makes a table that is not there, by ``key``, ``indexes`` and ``schema`` (a declaration), or as the export
    says. ``bad_rows`` is where bad rows are kept; more than ``bad_max`` of them end the import. ``null_text`` says null
    in CSV.
    """

    target: str
    files: tuple[str, ...]
    format: str | None = None
    null_text: str | None = None
    mode: PutMode = "upsert"
    expires: Expires = None
    create: bool = False
    key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    schema: str | None = None
    bad_rows: Path | None = None
    bad_max: int = BAD_MAX
    checkpoint: Path | None = None
    resume: bool = False
    force: bool = False
    dry_run: bool = False

    @property
    def is_resumable(self) -> bool:
        """Standard input and pipes cannot be read twice, and a rehearsal has nothing to go on with."""
        return not self.dry_run and not any(each == STDIN or is_read_once(Path(each)) for each in self.files)

    def check(self) -> None:
        """Raises InvalidArgument for what does not go together."""
        whole_rows(self.mode)
        if self.target.startswith(NAMESPACE_PREFIX):
            check_namespace(self.target.removeprefix(NAMESPACE_PREFIX), "TARGET")
        elif "." in self.target:
            split_table_name(self.target, "TARGET")
        else:
            check_database(self.target, "TARGET")
        if self.resume and not self.is_resumable:
            raise InvalidArgument("--resume", "needs files, not standard input, a pipe or --dry-run")
        if not self.create and (self.key or self.indexes or self.schema is not None):
            given = "--key" if self.key else "--schema" if self.schema is not None else "--index"
            raise InvalidArgument(given, "must be given with --create")
        if self.create and self.target.startswith(NAMESPACE_PREFIX):
            raise InvalidArgument("--create", "is for tables: a namespace needs no making")


def run_import(
    client: Client,
    request: ImportRequest,
    *,
    stdin: BinaryIO,
    tell: Callable[[BadRow], None],
    report: Report,
    loaded: Loaded | None = None,
) -> Loaded:
    """Does it. ``tell`` is told each bad row as it is found; ``loaded`` counts while it goes on. Raises what ends the
    import as a whole."""
    request.check()
    source = _Source(client, request, stdin)
    watch = None
    begin: Position | None = None
    if request.is_resumable:
        path = request.checkpoint or Path(request.target.replace(":", "-") + SUFFIX)
        watch = Checkpoint(path, source.identity())
        # An unfinished import stands in the way before the first change.
        begin = watch.look(resume=request.resume, force=request.force)
    bad_rows = None
    if request.bad_rows is not None:
        sizes = None if begin is None else begin.bad_sizes
        bad_rows = BadRows(request.bad_rows, force=request.force, sizes=sizes)
    try:
        tasks = source.tasks(report)
        if begin is not None and begin.file > len(tasks):
            raise InvalidArgument("--checkpoint", f"is behind the last of {len(tasks)} files", str(begin.file))
        if watch is not None:
            watch.save(begin or Position())
        load = Load(
            tasks,
            bad_max=request.bad_max,
            bad_rows=bad_rows,
            checkpoint=watch,
            begin=begin,
            tell=tell,
            report=report,
            loaded=loaded,
        )
        return _run(load, watch)
    finally:
        if bad_rows is not None:
            bad_rows.close()


def _run(load: Load, watch: Checkpoint | None) -> Loaded:
    try:
        return load.run()
    except BaseException:
        # Without a row done, there is no place to go on from.
        if watch is not None and load.position == Position():
            watch.remove()
        raise


class _Source:
    """The files of an import, and where their rows go."""

    def __init__(self, client: Client, request: ImportRequest, stdin: BinaryIO) -> None:
        self._client = client
        self._request = request
        self._is_pairs = request.target.startswith(NAMESPACE_PREFIX)
        self._export = self._opened_export()
        self._inputs = [] if self._export is not None else [self._input(each, stdin) for each in request.files]
        if self._export is not None and request.null_text is not None:
            raise InvalidArgument("--null", "is for files: an export's directory says null in its own way")

    def identity(self) -> dict[str, Any]:
        """Return the identity that tells this import from another one."""
        request = self._request
        paths = [each.path for each in self._inputs if each.path is not None]
        if self._export is not None:
            directory = self._export.directory
            names = [file.path for table in self._export.tables for file in table.files]
            paths = [directory / MANIFEST, *(below(directory, each) for each in names)]
        return {
            "cluster_id": self._client.status().cluster_id,
            "target": request.target,
            "mode": request.mode,
            "null": request.null_text,
            # Else a resume would cut off a file that another process wrote.
            "bad_rows": None if request.bad_rows is None else str(request.bad_rows),
            "files": files_identity(paths),
        }

    def tasks(self, report: Report) -> list[Task]:
        """Return the load's tasks; make databases, subjects and tables if requested."""
        if self._export is not None:
            self._export.check_files(report)
            return self._export_tasks(self._export)
        if self._is_pairs:
            namespace = self._request.target.removeprefix(NAMESPACE_PREFIX)
            store: Store = PairStore(self._client.kv(namespace), self._request.mode, self._request.expires)
            return self._tasks(pair_target(namespace), store)
        return self._table_tasks()

    def _opened_export(self) -> Export | None:
        """Return the export that is to be imported: a directory if it is the one thing that is named."""
        request = self._request
        directories = [each for each in request.files if each != STDIN and Path(each).is_dir()]
        if "." not in request.target and not self._is_pairs and directories != list(request.files):
            raise InvalidArgument("FILE", "must be an export's directory for a database", request.files[0])
        if not directories:
            return None
        if self._is_pairs or len(request.files) > 1:
            raise InvalidArgument("FILE", "must be a file, or one directory with an export of a table", directories[0])
        table = split_table_name(request.target)[1] if "." in request.target else None
        return Export.open(Path(directories[0]), table)

    def _input(self, name: str, stdin: BinaryIO) -> Input:
        asked = self._request
        if name == STDIN:
            format = format_to_read(asked.format or "jsonl", name)
            return Input("standard input", format, stream=stdin, null_text=null_text_of(asked.null_text, [format]))
        format = format_to_read(asked.format, name)
        return Input(name, format, Path(name), null_text=null_text_of(asked.null_text, [format]))

    # --- tables ------------------------------------------------------------------------------------------------

    def _table_tasks(self) -> list[Task]:
        request, client, full_name = self._request, self._client, self._request.target
        if request.create and (not request.dry_run or find_table(client, full_name) is None):
            schema = request.schema or self._schema_in_files()
            if request.dry_run:
                return self._tasks(future_target(full_name, schema or client.schemas.get(full_name).schema), Nowhere())
            make_table(client, full_name, request.key, request.indexes, schema)
        return self._tasks(
            table_target(client, full_name), TableStore(client.table(full_name), request.mode, request.expires)
        )

    def _schema_in_files(self) -> str | None:
        # To look into a pipe would be to take its rows.
        files = [(each.path, each.format) for each in self._inputs if each.path and not is_read_once(each.path)]
        return next((found for path, format in files if (found := schema_in_file(path, format)) is not None), None)

    def _export_tasks(self, export: Export) -> list[Task]:
        request, client = self._request, self._client
        if "." not in request.target:
            if request.dry_run:
                return rehearsal_tasks(export, request.target)
            return restore_tasks(
                client, export, request.target, mode=request.mode, expires=request.expires, again=request.resume
            )
        (entry,) = export.tables
        if find_table(client, request.target) is None:
            if not request.create:
                raise NotFound("table", f"{request.target}; --create makes it")
            if request.dry_run:
                return rehearsal_tasks(export, split_table_name(request.target)[0])
            make_table_of(client, export.manifest, entry, request.target)
        self._inputs = export.inputs(entry)
        return self._tasks(
            table_target(client, request.target),
            TableStore(client.table(request.target), request.mode, request.expires),
        )

    def _tasks(self, target: Target, store: Store) -> list[Task]:
        used = Nowhere() if self._request.dry_run else store
        return [Task(each, target, used) for each in self._inputs]
