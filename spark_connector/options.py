"""The options of a read and of a write, checked before anything is sent.

=================  ==========  ====================================================================================
option             for         meaning
=================  ==========  ====================================================================================
``endpoint``       both        address of a node, or of some, with commas; default: what ``CORTADO_ENDPOINTS`` holds
``table``          both        ``database.table``; required, unless ``load()`` or ``save()`` is given it
``timeoutSeconds`` both        of each call; default 30
``tlsCa``          both        PEM file of the servers' authorities: encrypts; default: no encryption
``tlsCert``        both        PEM file of our own certificate, with ``tlsKey``; needs ``tlsCa``
``tlsKey``         both        PEM file of its private key
``token``          both        the token that says who reads or writes, where the cluster has roles; never shown
``tokenFile``      both        a file that holds it, on the driver and on each executor
``at``             read        ``epoch.wall_ms.logical`` or RFC 3339 time to read at; default: that of ``load()``
``columns``        read        comma-separated fields, in that order; default: all
``filter``         read        a condition in the filter grammar, which the node evaluates; default: every row
``limit``          read        at most so many rows, the first ones in the order of the keys; one partition
``aggregate``      read        what the node works out of the rows: ``count(*) as n, sum(x) as s``; one partition
``groupBy``        read        with ``aggregate``: the fields whose values make groups; default: all rows are one
``index``          read        the index whose order, and whose key, the bounds speak of; one partition
``keyStart``       read        JSON array: the first parts of the key to start from, inclusive
``keyEnd``         read        JSON array: the first parts of the key to end before, exclusive
``partitions``     read        how many key ranges, with about equally many rows each; default: of 64 MiB each
``schemaVersion``  read        version of the subject to read with; default: the newest
``hold``           read        ``true`` (default): what is read is kept from collection for as long as tasks read it
``replicaRead``    read        ``leader`` (default), or ``nearest``: partitions are spread over all members
``startingAt``     changes     read changes instead of rows, after: ``latest`` (now), ``earliest`` (all that are kept)
                               or a timestamp as for ``at``; of a stream, ``state``: first the rows that there are
``endingAt``       changes     of a batch: up to this timestamp; default: now
``maxRowsPerTrigger`` changes  of a stream: at most so many changes a batch, or one commit; default: all there are
``failOnDataLoss`` changes     of a stream: ``false`` begins anew, with the state, where what it needs was collected
``consumerId``     changes     of a stream: a name under which its changes are kept while no query runs
``consumerTtl``    changes     with ``consumerId``: for how long, such as ``12h``; default ``7d``, at most ``30d``
``withPrevious``   changes     ``true``: the row that each change replaced, as ``_previous``; default ``false``
``operation``      write       ``upsert`` (default), ``insert``, ``update`` (of the DataFrame's columns), ``delete``, or
                               ``changes``: each row as its ``_op`` says
``confirmTruncate`` write      ``true``: mode "overwrite" may replace all rows of the table; default ``false``
``onConflict``     write       ``refuse`` (default): a row that was written since the job began, by a duplicate key
                               or by someone else, fails the job; ``overwrite``: the last one to arrive wins
``badRowsPath``    write       directory, or URL, in which rows that are refused are kept with their keys and errors,
                               instead of failing the job
``unchangedSince`` write       ``epoch.wall_ms.logical``: a row that was written since then counts as another writer's;
                               default: since the job began
``chunkRows``      write       rows a commit; default 2000, of an update 1000
``transactional``  write       ``true``: all rows of the job are visible at one timestamp, or never; default ``false``
``txnAppId``       write       with ``transactional``: who writes; a job whose ``txnVersion`` is not above that of its
                               last one changes nothing. Of a stream: default: the query's id
``txnVersion``     write       with ``txnAppId``: the number of this job, from 0
=================  ==========  ====================================================================================

Changes take ``columns``, ``keyStart``, ``keyEnd``, ``partitions``, ``schemaVersion`` and ``hold``, too.
A stream is written with ``operation``, ``onConflict``, ``chunkRows`` and ``txnAppId``.

Names that other sources have are taken, too: ``timestampAsOf`` for ``at``, ``numPartitions`` for ``partitions``,
``batchsize`` for ``chunkRows``, ``badRecordsPath`` for ``badRowsPath``.

Options of the other direction are left aside: a view of SQL has one set of options, to be read and inserted into with.
The files of certificates are read when a connection is made: on the driver, and on each executor under the same path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cortado.errors import InvalidArgument
from cortado.store.client import Tls
from cortado.store.client.authorization import TokenSource
from cortado.store.client.holds import CONSUMER_CHARS_MAX, CONSUMER_TTL_S_DEFAULT, CONSUMER_TTL_S_MAX
from cortado.store.client.large_transactions import APPLICATION_CHARS_MAX, VERSION_MAX
from cortado.store.client.reach import reached
from cortado.store.client.values import parse_at
from cortado.store.clock.retentions import parse_retention
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.aliases import ALIASES, as_given
from pyspark_cortado.credentials import tls_of, token_of

PARTITIONS_MAX = 4096
ROWS_MAX = 2**63 - 1
CHUNK_ROWS_MAX = 10_000
TIMEOUT_SECONDS_MAX = 86_400

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Connection:
    """The table's address, as the client takes it: no task depends on a node that the driver found."""

    endpoint: str
    table: str
    timeout_s: float
    tls: Tls | None
    token: TokenSource | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """A read, as asked for. Key bounds are JSON values, one a part, given their types by the table's key."""

    connection: Connection
    at: str | None
    columns: tuple[str, ...] | None
    filter: str | None
    limit: int | None
    index: str | None
    aggregate: str | None
    group_by: str | None
    key_start: tuple[Any, ...] | None
    key_end: tuple[Any, ...] | None
    partitions: int | None
    schema_version: int | None
    hold: bool
    reads_anywhere: bool

    @property
    def is_one_range(self) -> bool:
        """It cannot be cut: it is unknown which ranges' rows a limit leaves, and an index has no cuts."""
        return self.index is not None or (self.limit is not None and self.aggregate is None)


@dataclass(frozen=True, slots=True)
class ChangesOptions:
    """A read of changes, as asked for."""

    connection: Connection
    starting_at: str
    ending_at: str | None
    max_rows: int | None
    with_previous: bool
    fail_on_data_loss: bool
    consumer: str | None
    consumer_ttl_s: float
    columns: tuple[str, ...] | None
    key_start: tuple[Any, ...] | None
    key_end: tuple[Any, ...] | None
    partitions: int | None
    schema_version: int | None
    hold: bool


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """A write, as asked for."""

    connection: Connection
    operation: str
    confirm_truncate: bool
    refuse_conflicts: bool
    unchanged_since: Timestamp | None
    bad_rows_path: str | None
    chunk_rows: int
    transactional: bool
    application: str
    version: int
    checkpoint: str = ""
    """A stream's checkpoint: its place, if Spark has it as an option."""


_BOTH = ("endpoint", "table", "timeoutSeconds", "tlsCa", "tlsCert", "tlsKey", "token", "tokenFile")
_ROWS = ("columns", "filter", "limit", "index", "aggregate", "groupBy", "keyStart", "keyEnd", "partitions")
_READ = (*_BOTH, "at", *_ROWS, "schemaVersion", "hold", "replicaRead")
_STARTING = "startingAt"
_OF_CHANGES = ("endingAt", "maxRowsPerTrigger", "withPrevious", "failOnDataLoss", "consumerId", "consumerTtl")
_OF_RANGES = ("columns", "keyStart", "keyEnd", "partitions", "schemaVersion", "hold")
_CHANGES = (*_BOTH, _STARTING, *_OF_CHANGES, *_OF_RANGES)
OPERATIONS = ("upsert", "insert", "update", "delete", "changes")
_WRITE = (
    *_BOTH,
    "operation",
    "confirmTruncate",
    "onConflict",
    "unchangedSince",
    "badRowsPath",
    "chunkRows",
    "transactional",
    "txnAppId",
    "txnVersion",
)
_OF_STREAM = ("operation", "onConflict", "chunkRows", "txnAppId")
# Spark's own, which it hands on.
_OF_SPARK = ("checkpointLocation", "queryName")
_NOT_OF_STREAM = {
    "badRowsPath": "does not go with writeStream: a batch that lacks a row is not all of it",
    "confirmTruncate": "does not go with writeStream: a stream replaces no table",
    "transactional": "must be true with writeStream: each batch is visible at one timestamp",
    "txnVersion": "does not go with writeStream: it is the number of the batch",
    "unchangedSince": "does not go with writeStream: each batch has a beginning of its own",
}
_PATH = "path"
"""How Spark calls what load() and save() are given."""
_OF_CATALOGUE = (
    "(A read of a table of Spark's catalogue knows it, if that was created with OPTIONS and without columns. "
    "A write needs WITH (table = ...))"
)


def given_options(options: Mapping[str, Any], names: Sequence[str], function: str) -> dict[str, str]:
    """Return the options given to a function of this package, which takes ``names``. Raises InvalidArgument."""
    for name in options:
        if name not in names:
            raise InvalidArgument(f"option {name}", f"is not an option of {function}; there are {', '.join(names)}")
    return {name: str(value) for name, value in options.items()}


@as_given
def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises InvalidArgument that names the option, its value and the allowed values."""
    given = _known(options, _READ, (*_WRITE, *_OF_CHANGES), "a read")
    for name in _OF_CHANGES:
        if name in given:
            problem = "needs the option startingAt, with which changes are read"
            raise InvalidArgument(f"option {name}", problem, given[name])
    if "at" in given:
        parse_at(given["at"], "option at")
    return ReadOptions(
        connection=_connection(given),
        at=given.get("at"),
        columns=_columns(given),
        filter=_text(given, "filter"),
        limit=_whole(given, "limit", 0, ROWS_MAX, least=0) if "limit" in given else None,
        index=_text(given, "index"),
        aggregate=_aggregate(given),
        group_by=_text(given, "groupBy"),
        key_start=_key(given, "keyStart"),
        key_end=_key(given, "keyEnd"),
        partitions=_partitions(given),
        schema_version=_whole(given, "schemaVersion", 1, 2**31 - 1) if "schemaVersion" in given else None,
        hold=_is_held(given),
        reads_anywhere=_one_of(given, "replicaRead", ("leader", "nearest")) == "nearest",
    )


def reads_changes(options: Mapping[str, str]) -> bool:
    """Return whether a read is one of changes."""
    return any(name.lower() == _STARTING.lower() for name in options)


@as_given
def changes_options(options: Mapping[str, str]) -> ChangesOptions:
    """Raises InvalidArgument that names the option, its value and the allowed values."""
    given = _known(options, _CHANGES, _WRITE, "a read of changes")
    for name in ("maxRowsPerTrigger", "failOnDataLoss", "consumerId"):
        if name in given and "endingAt" in given:
            raise InvalidArgument(f"option {name}", "is of a stream, and endingAt of a batch", given[name])
    for name in (_STARTING, "endingAt"):
        if name in given and not (name == _STARTING and given[name] in ("latest", "earliest", "state")):
            parse_at(given[name], f"option {name}")
    return ChangesOptions(
        connection=_connection(given),
        starting_at=given[_STARTING],
        ending_at=given.get("endingAt"),
        max_rows=_whole(given, "maxRowsPerTrigger", 1, 2**31 - 1) if "maxRowsPerTrigger" in given else None,
        with_previous=_one_of(given, "withPrevious", ("false", "true")) == "true",
        consumer=_consumer(given),
        consumer_ttl_s=_consumer_ttl_s(given),
        fail_on_data_loss=_one_of(given, "failOnDataLoss", ("true", "false")) == "true",
        columns=_columns(given),
        key_start=_key(given, "keyStart"),
        key_end=_key(given, "keyEnd"),
        partitions=_partitions(given),
        schema_version=_whole(given, "schemaVersion", 1, 2**31 - 1) if "schemaVersion" in given else None,
        hold=_is_held(given),
    )


@as_given
def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises InvalidArgument that names the option, its value and the allowed values."""
    given = _known(options, _WRITE, (*_READ, *_CHANGES), "a write")
    return WriteOptions(
        connection=_connection(given),
        operation=_one_of(given, "operation", OPERATIONS),
        confirm_truncate=_one_of(given, "confirmTruncate", ("false", "true")) == "true",
        refuse_conflicts=_one_of(given, "onConflict", ("refuse", "overwrite")) == "refuse",
        unchanged_since=_unchanged_since(given),
        bad_rows_path=_bad_rows_path(given),
        chunk_rows=_chunk_rows(given),
        transactional=_one_of(given, "transactional", ("false", "true")) == "true",
        application=_application_of_job(given),
        version=_whole(given, "txnVersion", 0, VERSION_MAX, least=0),
    )


@as_given
def stream_options(options: Mapping[str, str]) -> WriteOptions:
    """Return the options of a stream's write. Raises InvalidArgument that names the option, its value and the allowed
    values."""
    given = _known(options, (*_BOTH, *_OF_STREAM), (*_NOT_OF_STREAM, *_OF_SPARK), "writeStream")
    for name, problem in _NOT_OF_STREAM.items():
        if name in given and (name, given[name]) != ("transactional", "true"):
            raise InvalidArgument(f"option {name}", problem, given[name])
    return WriteOptions(
        connection=_connection(given),
        operation=_one_of(given, "operation", OPERATIONS),
        confirm_truncate=False,
        refuse_conflicts=_one_of(given, "onConflict", ("refuse", "overwrite")) == "refuse",
        unchanged_since=None,
        bad_rows_path=None,
        chunk_rows=_chunk_rows(given),
        transactional=True,
        application=_application(given),
        version=0,
        checkpoint=given.get("checkpointLocation", ""),
    )


def _known(options: Mapping[str, str], names: tuple[str, ...], others: tuple[str, ...], what: str) -> dict[str, str]:
    """Return options by their documented names, from any case of letters or an alias, without those of the other
    direction."""
    by_lower = {name.lower(): name for name in (*others, *names, _PATH)}
    by_lower |= {alias.lower(): name for alias, name in ALIASES.items() if name.lower() in by_lower}
    known: dict[str, str] = {}
    for key, value in options.items():
        name = by_lower.get(key.lower())
        if name is None:
            raise InvalidArgument(f"option {key}", f"is not an option of {what}; there are {', '.join(names)}", value)
        if name in known:
            raise InvalidArgument(f"option {key}", f"must not be given beside {name}, which says the same", value)
        known[name] = value
    return known


def _connection(given: Mapping[str, str]) -> Connection:
    table = given.get("table", given.get(_PATH, ""))
    if given.get(_PATH, table) != table:
        raise InvalidArgument("option table", f"is not what load() or save() is given, {given[_PATH]}", table)
    if not table:
        raise InvalidArgument("option table", f'is required, as "database.table". {_OF_CATALOGUE}')
    if table.count(".") != 1 or not all(table.split(".")):
        raise InvalidArgument("option table", 'is required, as "database.table"', table)
    timeout_s = _parsed(given, "timeoutSeconds", 30.0, float, "a number of seconds")
    if not 0 < timeout_s <= TIMEOUT_SECONDS_MAX:
        limit = f"must be above 0 and at most {TIMEOUT_SECONDS_MAX}"
        raise InvalidArgument("option timeoutSeconds", limit, str(timeout_s))
    endpoint, tls, token = reached(given.get("endpoint"), tls_of(given), token_of(given))
    return Connection(endpoint, table, timeout_s, tls, token)


def _columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    columns = tuple(name.strip() for name in given["columns"].split(","))
    if not all(columns) or len(set(columns)) != len(columns):
        raise InvalidArgument("option columns", "must be different field names with commas between", given["columns"])
    return columns


def _text(given: Mapping[str, str], name: str) -> str | None:
    if not given.get(name, "x").strip():
        raise InvalidArgument(f"option {name}", "must not be empty", repr(given[name]))
    return given.get(name)


def _aggregate(given: Mapping[str, str]) -> str | None:
    if "groupBy" in given and "aggregate" not in given:
        raise InvalidArgument("option groupBy", "needs the option aggregate, such as count(*) as n", given["groupBy"])
    if "columns" in given and "aggregate" in given:
        raise InvalidArgument(
            "option columns", "has no meaning beside aggregate: the columns are the groups' and its own"
        )
    return _text(given, "aggregate")


def _partitions(given: Mapping[str, str]) -> int | None:
    if "partitions" not in given:
        return None
    number = _whole(given, "partitions", 1, PARTITIONS_MAX)
    alone = next((name for name in ("limit", "index") if name in given and "aggregate" not in given), None)
    if alone is not None and number > 1:
        raise InvalidArgument(
            "option partitions", f"must be 1 with the option {alone}: such a read is one range", str(number)
        )
    return number


def _key(given: Mapping[str, str], name: str) -> tuple[Any, ...] | None:
    if name not in given:
        return None
    parts = _parsed(given, name, None, json.loads, "a JSON array of key parts")
    if not isinstance(parts, list) or not parts:
        raise InvalidArgument(f"option {name}", 'must be a JSON array of key parts, such as ["UA", 1545]', given[name])
    return tuple(parts)


def _is_held(given: Mapping[str, str]) -> bool:
    return _one_of(given, "hold", ("true", "false")) == "true"


def _consumer(given: Mapping[str, str]) -> str | None:
    name = _text(given, "consumerId")
    if name is not None and len(name) > CONSUMER_CHARS_MAX:
        problem = f"must have 1 to {CONSUMER_CHARS_MAX} characters"
        raise InvalidArgument("option consumerId", problem, f"{len(name)} characters")
    if name is not None and not _is_held(given):
        raise InvalidArgument("option consumerId", 'needs the option hold "true": it is one', name)
    return name


def _consumer_ttl_s(given: Mapping[str, str]) -> float:
    if "consumerTtl" not in given:
        return CONSUMER_TTL_S_DEFAULT
    value = given["consumerTtl"]
    if "consumerId" not in given:
        raise InvalidArgument("option consumerTtl", "needs the option consumerId", value)
    ttl_ms = parse_retention(value)
    if ttl_ms is None or not 1_000 <= ttl_ms <= CONSUMER_TTL_S_MAX * 1_000:
        raise InvalidArgument("option consumerTtl", "must be a time such as 12h or 7d, from 1s to 30d", value)
    return ttl_ms / 1_000


def _bad_rows_path(given: Mapping[str, str]) -> str | None:
    if given.get("transactional") == "true" and "badRowsPath" in given:
        problem = 'does not go with transactional "true": a job that lacks a row is not all of it'
        raise InvalidArgument("option badRowsPath", problem, given["badRowsPath"])
    if given.get("onConflict") == "overwrite" and "badRowsPath" in given:
        # A task that runs again would be refused its own rows, and keep them aside as bad ones.
        raise InvalidArgument("option badRowsPath", 'needs the option onConflict "refuse"', given["badRowsPath"])
    if given.get("operation") == "changes" and "badRowsPath" in given:
        problem = 'does not go with operation "changes": without a row that is refused, later ones would be others'
        raise InvalidArgument("option badRowsPath", problem, given["badRowsPath"])
    return _text(given, "badRowsPath") or None


def _chunk_rows(given: Mapping[str, str]) -> int:
    # Updated rows are worked out in their turn, and cost more of it.
    return _whole(given, "chunkRows", 1000 if given.get("operation") == "update" else 2000, CHUNK_ROWS_MAX)


def _unchanged_since(given: Mapping[str, str]) -> Timestamp | None:
    if "unchangedSince" not in given:
        return None
    if given.get("onConflict") == "overwrite":
        problem = 'needs the option onConflict "refuse"'
        raise InvalidArgument("option unchangedSince", problem, given["unchangedSince"])
    try:
        return Timestamp.parse(given["unchangedSince"])
    except InvalidArgument as error:
        raise InvalidArgument("option unchangedSince", error.problem, error.value) from None


def _application_of_job(given: Mapping[str, str]) -> str:
    """Return the application that numbers the job; empty without one."""
    for name in ("txnAppId", "txnVersion"):
        if name in given and given.get("transactional") != "true":
            raise InvalidArgument(f"option {name}", 'needs the option transactional "true"', given[name])
    if ("txnAppId" in given) != ("txnVersion" in given):
        missing = "txnVersion" if "txnAppId" in given else "txnAppId"
        raise InvalidArgument(
            f"option {missing}", "must be given together with the other one of txnAppId and txnVersion"
        )
    return _application(given)


def _application(given: Mapping[str, str]) -> str:
    application = given.get("txnAppId", "")
    if "txnAppId" in given and not 0 < len(application) <= APPLICATION_CHARS_MAX:
        problem = f"must have 1 to {APPLICATION_CHARS_MAX} characters"
        raise InvalidArgument("option txnAppId", problem, f"{len(application)} characters")
    return application


def _whole(given: Mapping[str, str], name: str, default: int, bound: int, *, least: int = 1) -> int:
    number = _parsed(given, name, default, int, "a whole number")
    if not least <= number <= bound:
        raise InvalidArgument(f"option {name}", f"must be between {least} and {bound}", str(number))
    return number


def _one_of(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    chosen = given.get(name, choices[0])
    if chosen not in choices:
        raise InvalidArgument(f"option {name}", f"must be one of {', '.join(choices)}", chosen)
    return chosen


def _parsed(given: Mapping[str, str], name: str, default: T, parse: Callable[[str], T], what: str) -> T:
    if name not in given:
        return default
    try:
        return parse(given[name])
    except (ValueError, RecursionError):
        raise InvalidArgument(f"option {name}", f"must be {what}", given[name]) from None
