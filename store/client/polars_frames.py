"""Arrow tables as data frames of polars. Imported on first use, so that other programs need no polars."""

from __future__ import annotations

from cortado.extras import needing

with needing("polars", "to_polars"):
    import polars as pl
    import pyarrow as pa


def frame_of(table: pa.Table) -> pl.DataFrame:
    """Return the rows of an Arrow table."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
