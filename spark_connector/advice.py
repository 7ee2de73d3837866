"""A line on the error output for a ``load()`` that reads a large table as a whole.

Spark 4.3's pushdown for Python sources is wrong (``tests/spark/test_spark_pushdown.py``), so ``df.where`` cannot reach
the nodes: all rows travel, and nothing else says so.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

from cortado.errors import CortadoError
from pyspark_cortado.clients import open_client
from pyspark_cortado.options import ReadOptions

LARGE_BYTES: Final = 1 << 30


def advise(options: ReadOptions) -> None:
    """Print the line if the read is of a whole table with at least ``LARGE_BYTES`` of rows."""
    narrowed = (options.filter, options.limit, options.aggregate, options.key_start, options.key_end)
    if any(each is not None for each in narrowed):
        return
    table = options.connection.table
    # A table that is read as of the past may have another name now. The line is worth no error.
    with suppress(CortadoError), open_client(options.connection) as client:
        size_bytes = client.admin.sizes.table(table).rows.bytes
        if size_bytes >= LARGE_BYTES:
            sys.stderr.write(
                f"cortado: all of {table}, {size_bytes / 2**30:.1f} GiB, will be read: Spark alone evaluates where() "
                "of a DataFrame. Nodes evaluate the option filter, and plain conditions of pyspark_cortado.sql()\n"
            )
