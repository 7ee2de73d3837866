"""The data source itself: what Spark asks for a schema, a reader and a writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_cortado.reader import TableReader
    from pyspark_cortado.writer import TableWriter


class DefaultSource(DataSource):
    """``format("cortado")``. The options are those of :mod:`pyspark_cortado.options`."""

    # Spark carries the source from schema() to reader(): the version whose columns it was told is the one it reads.
    _version: int | None = None

    @classmethod
    def name(cls) -> str:
        return "cortado"

    def schema(self) -> StructType:
        """The table's columns as Spark types. Raises InvalidArgument, NotFound, Unsupported, Unavailable."""
        from pyspark_cortado.options import read_options
        from pyspark_cortado.reader import table_schema

        schema, self._version = table_schema(read_options(self.options))
        return schema

    def reader(self, schema: StructType) -> TableReader:
        """``schema`` is the table's, or the subset that ``spark.read.schema(...)`` named."""
        from pyspark_cortado.options import read_options
        from pyspark_cortado.reader import prepare_read

        return prepare_read(read_options(self.options, self._version), schema)

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """``schema`` is the DataFrame's. ``overwrite`` (Spark's mode "overwrite") is refused."""
        from pyspark_cortado.options import write_options
        from pyspark_cortado.writer import prepare_write

        return prepare_write(write_options(self.options), schema, overwrite)
