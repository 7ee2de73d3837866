"""The data source itself: Spark asks it for a schema, a reader and a writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_cortado.changes import ChosenChanges
    from pyspark_cortado.leases import Chosen
    from pyspark_cortado.stream_writer import TableStreamWriter
    from pyspark_cortado.writer import TableWriter


class DefaultSource(DataSource):
    """``format("cortado")``. The options are those of :mod:`pyspark_cortado.options`.

    ``load()`` asks for the schema, and so makes the DataFrame's choice: a timestamp and a version of the schema. Spark
    carries both in a pickle of this object to the DataFrame's first action, perhaps hours later, and makes the reader
    there. If ``spark.read.schema(...)`` gave a schema, the first action makes this object and chooses.
    """

    _chosen: Chosen | None = None
    _changes: ChosenChanges | None = None

    @classmethod
    def name(cls) -> str:
        return "cortado"

    def schema(self) -> StructType:
        """Return the table's columns as Spark types, or those of its changes. Raises InvalidArgument, NotFound,
        Unsupported, Unavailable."""
        from pyspark_cortado.advice import advise
        from pyspark_cortado.catalogue import is_new_table, keeping, options_of_new_table
        from pyspark_cortado.changes import changes_schema
        from pyspark_cortado.options import changes_options, read_options, reads_changes
        from pyspark_cortado.reader import table_schema

        if is_new_table(self.options):
            given = options_of_new_table(self.options)
            # Nothing is read yet that a hold could keep.
            return keeping(table_schema(read_options({**given, "hold": "false"}))[0], given)
        if reads_changes(self.options):
            schema, self._changes = changes_schema(changes_options(self.options))
        else:
            options = read_options(self.options)
            schema, self._chosen = table_schema(options)
            advise(options)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """``schema`` is the table's, or the subset that ``spark.read.schema(...)`` named, or what Spark's catalogue has
        kept."""
        from pyspark_cortado.catalogue import options_to_read
        from pyspark_cortado.changes import ChangesReader
        from pyspark_cortado.options import changes_options, read_options, reads_changes
        from pyspark_cortado.reader import choose, prepare_read

        if reads_changes(self.options):
            return ChangesReader(changes_options(self.options), schema, self._chosen_changes())
        options = read_options(options_to_read(self.options, schema))
        return prepare_read(options, schema, self._chosen or choose(options))

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """``schema`` is the DataFrame's; ``overwrite`` is Spark's mode "overwrite"."""
        from pyspark_cortado.options import write_options
        from pyspark_cortado.overwriting import prepare_overwrite
        from pyspark_cortado.transactional import prepare_transaction
        from pyspark_cortado.writer import prepare_write

        options = write_options(self.options)
        if overwrite:
            return prepare_overwrite(options, schema)
        return prepare_transaction(options, schema) if options.transactional else prepare_write(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader of changes. Spark asks when the query starts: nothing tells ``load()`` that it is for a
        stream."""
        from cortado.errors import InvalidArgument
        from pyspark_cortado.options import changes_options, reads_changes
        from pyspark_cortado.stream_reader import ChangesStreamReader

        if not reads_changes(self.options):
            raise InvalidArgument(
                "option startingAt", "is required by readStream: latest, earliest, state or a timestamp"
            )
        return ChangesStreamReader(changes_options(self.options), schema, self._chosen_changes().version)

    def _chosen_changes(self) -> ChosenChanges:
        from cortado.errors import Unsupported

        if self._changes is None:
            raise Unsupported("a schema of changes that is given", "the option columns")
        return self._changes

    def streamWriter(self, schema: StructType, overwrite: bool) -> TableStreamWriter:  # noqa: N802
        """For one batch: Spark asks as it plans it, and once more as it commits it. ``overwrite`` is the output mode
        "complete"."""
        from pyspark_cortado.options import stream_options
        from pyspark_cortado.stream_writer import prepare_stream

        return prepare_stream(stream_options(self.options), schema, overwrite)
