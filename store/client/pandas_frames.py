"""Arrow tables as data frames of pandas. Imported on first use, so that other programs need no pandas."""

from __future__ import annotations

from cortado.extras import needing

with needing("pandas", "to_pandas"):
    import pandas as pd
    import pyarrow as pa


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return the rows of an Arrow table, in columns of its types."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)
