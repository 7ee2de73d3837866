"""The tables of the story: those of ``cortado dev up --demo``, as Spark and pandas read their files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from cortado.store.local_cluster.demo import DATABASE, NULL_TEXT, TABLES, DemoTable, data_folder, unpack

__all__ = ["DATABASE", "DDL", "NULL_TEXT", "TABLES", "DemoTable", "read_with_pandas", "schema_file", "unpack"]

DDL: Final = {
    "airlines": "carrier string, name string",
    "airports": "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string",
    "planes": "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, "
    "speed int, engine string",
    "weather": "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
    "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
    "time_hour timestamp",
    "flights": "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time int, distance int, hour int, minute int, time_hour timestamp",
}
"""The types of each file's columns, as Spark reads them."""


def schema_file(name: str) -> Path:
    """Return the file of a later version of a schema."""
    return Path(__file__).parent / "schemas" / f"{name}.avsc"


def read_with_pandas(table: DemoTable) -> pd.DataFrame:
    """Return the table as pandas sees it, straight from the package's file: nothing of Cortado or Spark is in the
    way."""
    packed = data_folder() / f"{table.csv}.zip"
    path = packed if packed.exists() else data_folder() / table.csv
    # Exact decimal to double conversion, as Java's: the default is off by one unit in the last place now and then.
    return pd.read_csv(path, keep_default_na=False, na_values=[NULL_TEXT, ""], float_precision="round_trip")
