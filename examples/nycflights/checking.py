"""The judge: pandas reads the CSV files by itself, and Cortado's answers must be the same."""

from __future__ import annotations

import pandas as pd

from examples.nycflights.dataset import TABLES, DemoTable, read_with_pandas

DELAY_TOLERANCE = 1e-9


class Difference(Exception):
    """Cortado's answer differs from the files."""


def expected_delays() -> pd.DataFrame:
    """Return the mean arrival delay by airline name, by pandas alone."""
    by_name = {table.name: table for table in TABLES}
    flights = read_with_pandas(by_name["flights"])
    airlines = read_with_pandas(by_name["airlines"])
    joined = flights.merge(airlines, on="carrier", how="inner")
    grouped = joined.groupby("name")["arr_delay"].agg(["mean", "count"]).reset_index()
    return grouped.sort_values(["mean", "name"], ascending=[False, True]).reset_index(drop=True)


def check_delays(found: list[tuple[str, float, int]], expected: pd.DataFrame) -> None:
    """Raise Difference unless names, counts and means agree, in order."""
    wanted = list(expected.itertuples(index=False, name=None))
    if len(found) != len(wanted):
        raise Difference(f"{len(found)} airlines came back, pandas finds {len(wanted)}")
    for (name, mean, count), (wanted_name, wanted_mean, wanted_count) in zip(found, wanted, strict=True):
        if name != wanted_name or count != wanted_count or abs(mean - wanted_mean) > DELAY_TOLERANCE:
            raise Difference(
                f"{name}: {mean} over {count} flights, pandas says {wanted_name}: {wanted_mean} over {wanted_count}"
            )


def check_shape(table: DemoTable, rows: int, nulls: dict[str, int], nans: dict[str, int]) -> None:
    """Raise Difference unless the number of rows and of nulls in each column are the file's, and nothing is NaN."""
    expected = read_with_pandas(table)
    if rows != len(expected):
        raise Difference(f"{table.name}: {rows} rows came back, the file has {len(expected)}")
    for column in expected.columns:
        wanted = int(expected[column].isna().sum())
        if nulls[column] != wanted:
            raise Difference(f"{table.name}.{column}: {nulls[column]} nulls came back, the file has {wanted}")
    for column, count in nans.items():
        if count:
            raise Difference(f"{table.name}.{column}: {count} values are NaN, where the file has a null or a number")


def check_content(table: DemoTable, found: pd.DataFrame) -> None:
    """Raise Difference unless every cell is the file's. ``found`` has the table's columns, in any order of rows."""
    expected = read_with_pandas(table)
    for column in expected.columns:
        if column == "time_hour":
            expected[column] = pd.to_datetime(expected[column], utc=True).dt.tz_localize(None).astype("datetime64[us]")
    order = list(table.key)
    left = found[list(expected.columns)].sort_values(order).reset_index(drop=True)
    right = expected.sort_values(order).reset_index(drop=True)
    for column in expected.columns:
        same = (left[column] == right[column]) | (left[column].isna() & right[column].isna())
        if not bool(same.all()):
            row = int((~same).idxmax())
            raise Difference(
                f"{table.name}.{column}: {left[column][row]!r} came back for {right.loc[row, order].to_dict()}, "
                f"the file has {right[column][row]!r}"
            )
