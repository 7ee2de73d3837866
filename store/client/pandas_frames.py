"""Arrow tables as data frames of pandas. Imported where one is asked for: who never does needs no pandas."""

from __future__ import annotations

from cortado.errors import Unsupported

try:
    import pandas as pd
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise Unsupported(f"to_pandas without {error.name}", "pip install 'cortado[pandas]'") from None


def frame_of(table: pa.Table) -> pd.DataFrame:
    """The rows of an Arrow table, in columns of its types."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)
