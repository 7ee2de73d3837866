"""Arrow tables as data frames of polars. Imported where one is asked for: who never does needs no polars."""

from __future__ import annotations

from cortado.errors import Unsupported

try:
    import polars as pl
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise Unsupported(f"to_polars without {error.name}", "pip install 'cortado[polars]'") from None


def frame_of(table: pa.Table) -> pl.DataFrame:
    """The rows of an Arrow table."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
