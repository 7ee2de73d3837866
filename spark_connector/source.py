"""The data source itself: what Spark asks for a schema, a reader and a writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_cortado.aggregates import AggregateReader
    from pyspark_cortado.reader import Chosen, TableReader
    from pyspark_cortado.writer import TableWriter


class DefaultSource(DataSource):
    """``format("cortado")``. The options are those of :mod:`pyspark_cortado.options`.

    ``load()`` asks for the schema, and so chooses what the DataFrame reads: a timestamp and a version of the schema.
    Spark carries both in a pickle of this object to the DataFrame's first action, perhaps hours later, and makes the
    reader there. Where ``spark.read.schema(...)`` gave a schema, the first action makes this object and chooses.
    """

    _chosen: Chosen | None = None

    @classmethod
    def name(cls) -> str:
        return "cortado"

    def schema(self) -> StructType:
        """The table's columns as Spark types. Raises InvalidArgument, NotFound, Unsupported, Unavailable."""
        from pyspark_cortado.options import read_options
        from pyspark_cortado.reader import table_schema

        schema, self._chosen = table_schema(read_options(self.options))
        return schema

    def reader(self, schema: StructType) -> TableReader | AggregateReader:
        """``schema`` is the table's, or the subset that ``spark.read.schema(...)`` named."""
        from pyspark_cortado.options import read_options
        from pyspark_cortado.reader import choose, prepare_read

        options = read_options(self.options)
        return prepare_read(options, schema, self._chosen or choose(options))

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """``schema`` is the DataFrame's; ``overwrite`` is Spark's mode "overwrite"."""
        from pyspark_cortado.options import write_options
        from pyspark_cortado.overwriting import prepare_overwrite
        from pyspark_cortado.writer import prepare_write

        options = write_options(self.options)
        return prepare_overwrite(options, schema) if overwrite else prepare_write(options, schema)

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802, ARG002
        """Raises Unsupported. Spark asks when the query starts: nothing tells ``load()`` that it is for a stream."""
        from cortado.errors import Unsupported

        raise Unsupported("spark.readStream", "read a batch, or watch the table with a client")

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802, ARG002
        """Raises Unsupported."""
        from cortado.errors import Unsupported

        raise Unsupported("writeStream", "append each batch with foreachBatch")
