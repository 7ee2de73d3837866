"""``table()``: a read of one table, put together word by word; each ``df()`` is one fresh ``load()``.

::

    table(spark, "nyc.flights").where("month = 1").select("origin").limit(10).at(ts).df()
    table(spark, "nyc.flights").group_by("origin").agg("count(*) as n", "avg(dep_delay) as delay").df()

Its methods are left to the node, like the options of the same names. Later operations on the DataFrame are Spark's:
``explain()`` says which is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table(spark: SparkSession, name: str, **options: Any) -> TableQuery:
    """Return a read of the table ``name``, ``database.table``. The ``options`` are those of a read, such as
    ``endpoint``; without one, the connection is the session's."""
    from pyspark_cortado.defaults import with_defaults

    given = with_defaults(spark, {option: str(value) for option, value in options.items()})
    return TableQuery(spark, {**given, "table": name})


@dataclass(frozen=True)
class TableQuery:
    """The query so far. Each method returns another one, and leaves this one as it is."""

    _spark: SparkSession = field(repr=False)
    _options: Mapping[str, str]

    def where(self, condition: str) -> TableQuery:
        """Keep rows for which ``condition``, in the filter language, is true; called again, both must be. Raises
        InvalidFilter if it does not parse, with the position."""
        from cortado.store.filter.parse import parse_filter

        parse_filter(condition)
        before = self._options.get("filter")
        return self._with("filter", condition if before is None else f"({before}) and ({condition})")

    def select(self, *columns: str) -> TableQuery:
        """Read these fields, in this order."""
        return self._with("columns", ",".join(columns))

    def limit(self, rows: int) -> TableQuery:
        """Keep at most ``rows`` rows, the first ones in the order of the keys, after all conditions, in any order of
        the calls; with groups, the first groups."""
        return self._with("limit", str(rows))

    def at(self, time: Any) -> TableQuery:
        """Read the table as it was then: a Timestamp, its text, or a datetime with a time zone. Raises
        InvalidArgument."""
        from pyspark_cortado.statements import time_text

        return self._with("at", time_text(time))

    def group_by(self, *fields: str) -> TableQuery:
        """Make a row for each group of rows with equal values of these ``fields``, each perhaps with ``as name``."""
        return self._with("groupBy", ", ".join(fields))

    def agg(self, *aggregates: str) -> TableQuery:
        """Compute these for each group, or for all rows: ``"count(*) as n"``, ``"sum(x) as s"``, min, max, avg."""
        return self._with("aggregate", ", ".join(aggregates))

    def df(self) -> DataFrame:
        """Return a DataFrame of one timestamp: that of :meth:`at`, or now. Raises the errors of ``load()``."""
        return self._spark.read.format("cortado").options(**self._options).load()

    def explain(self) -> str:
        """Return the plan, a line each: at the node, in Spark's tasks, and in Spark. Raises InvalidArgument."""
        from pyspark_cortado.options import read_options

        options = read_options(self._options)
        bounds = {"keyStart": options.key_start, "keyEnd": options.key_end}
        where = [f"{name} {list(parts)}" for name, parts in bounds.items() if parts is not None]
        where += [f"index {options.index}"] if options.index is not None else []
        where += [f"filter {options.filter}"] if options.filter is not None else []
        where += [f"limit {options.limit}"] if options.limit is not None and options.aggregate is None else []
        ranges = 1 if options.is_one_range else options.partitions
        if options.aggregate is None:
            task = f"{', '.join(options.columns) if options.columns is not None else 'all columns'} of each row decoded"
            parts = f"{ranges} partition{'s' * (ranges > 1)}"
        else:
            where.append(f"aggregate {options.aggregate}")
            where += [f"group by {options.group_by}"] if options.group_by is not None else []
            task = f"groups of {ranges} range{'s' * (ranges > 1)} merged"
            task += f", the first {options.limit} kept" if options.limit is not None else ""
            parts = "1 partition"
        connection = options.connection
        lines = [
            f"{connection.table} at {options.at or 'the time of df()'}, from {connection.endpoint}",
            f"node:  {'; '.join(where) or 'every row'}",
            f"tasks: {task}",
            f"Spark: {parts}, and all further steps of the DataFrame",
        ]
        return "\n".join(lines)

    def _with(self, option: str, value: str) -> TableQuery:
        return replace(self, _options={**self._options, option: value})
