"""Arguments and options that several groups of commands share. Light: completions import their modules when they are
used."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cortado.store.cli.completing import complete_namespaces, complete_tables
from cortado.store.cli.numbers import ttl, whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.times import FORMS, Moment, moment

if TYPE_CHECKING:
    from cortado.store.client import Client
    from cortado.store.client.put_mode import PutMode

SHOWN_MAX: Final = 100
"""How many rows a scan shows as a table without --limit."""
BAD_MAX: Final = 1_000
"""After this many bad rows a load ends without --max-bad."""
CLUSTER_DIRECTORY: Final = Path("cortado-cluster")


class Mode(StrEnum):
    """Which rows are written."""

    UPSERT = "upsert"
    INSERT = "insert"
    REPLACE = "replace"


TableArgument: TypeAlias = Annotated[
    str, Argument(help="The table, as database.table.", metavar="TABLE", completion=complete_tables)
]
NamespaceArgument: TypeAlias = Annotated[
    str, Argument(help="The namespace.", metavar="NAMESPACE", completion=complete_namespaces)
]
PairKeyArgument: TypeAlias = Annotated[str, Argument(help=r"The key; \xNN is a byte, \\ a backslash.", metavar="KEY")]
DocumentKeyArgument: TypeAlias = Annotated[
    list[str], Argument(help="The parts of the key in order, each by its declared type.", metavar="KEY")
]
PartsArgument: TypeAlias = Annotated[
    list[str], Argument(help="The parts of the key in order, each by its declared type.", metavar="PART")
]
EntryArgument: TypeAlias = Annotated[
    list[str],
    Argument(help="The indexed values in order, optionally followed by the primary key.", metavar="PART"),
]
IndexArgument: TypeAlias = Annotated[str, Argument(help="The name of the index.", metavar="INDEX")]
NodeIdArgument: TypeAlias = Annotated[str, Argument(help="The node's id.", metavar="NODE_ID")]
ClusterNodeArgument: TypeAlias = Annotated[str, Argument(help="The node's id, such as n1.", metavar="NODE")]

AtOption: TypeAlias = Annotated[
    Moment | None,
    Option("--at", help=f"Read as of {FORMS} (five minutes ago).", parser=moment("--at"), metavar="TIME"),
]
AsNameOption: TypeAlias = Annotated[
    str | None, Option("--as", help="The name to bring it back under.", show_default="its own", metavar="NAME")
]
NumberOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--number",
        help="The number of the drop, as --dropped shows it.",
        parser=whole("--number", 1, (1 << 32) - 1),
        show_default="the last one of that name",
        metavar="N",
    ),
]
LimitOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--limit",
        help="Maximum number of rows.",
        show_default=f"{SHOWN_MAX} as a table, all with -o json",
        parser=whole("--limit"),
        metavar="N",
    ),
]
ReverseOption: TypeAlias = Annotated[bool, Option("--reverse", help="In descending order of the key.")]
PrefixOption: TypeAlias = Annotated[str | None, Option("--prefix", help="Only keys with this prefix.", metavar="TEXT")]
IfAbsentOption: TypeAlias = Annotated[bool, Option("--if-absent", help="Only if the key does not exist.")]
IfPresentOption: TypeAlias = Annotated[bool, Option("--if-present", help="Only if the key exists.")]
EtagOption: TypeAlias = Annotated[
    str | None, Option("--if-etag", help="Only if the current etag is this one.", metavar="ETAG")
]
ModeOption: TypeAlias = Annotated[
    Mode,
    Option("--mode", help="upsert: always; insert: only new rows; replace: only existing rows.", metavar="MODE"),
]
TtlOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--ttl",
        help="How long it lives, from now on: 90s, 30m, 12h, 7d, or none (for ever).",
        parser=ttl("--ttl"),
        show_default="as its table says; a pair: none",
        metavar="TIME",
    ),
]
MetaOption: TypeAlias = Annotated[
    bool, Option("--meta", help="With -o json: wrap each document in an object with its etag.")
]
FilterOption: TypeAlias = Annotated[
    str | None, Option("--filter", help="Only documents for which this expression is true.", metavar="EXPR")
]
ColumnsOption: TypeAlias = Annotated[
    str | None, Option("--columns", help="Only these fields, separated by commas.", metavar="FIELD,...")
]
LeadingPartsArgument: TypeAlias = Annotated[
    list[str] | None, Argument(help="Leading parts of the key, or of the index's key.", metavar="PART")
]
StartOption: TypeAlias = Annotated[
    str | None, Option("--start", help="Lower bound: a part, or a JSON array of parts.", metavar="KEY")
]
EndOption: TypeAlias = Annotated[str | None, Option("--end", help="Upper bound, exclusive.", metavar="KEY")]
MaxBadOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--max-bad",
        help="Stop after more bad rows than this.",
        parser=whole("--max-bad"),
        show_default=f"{BAD_MAX}",
        metavar="N",
    ),
]
StreamsOption: TypeAlias = Annotated[
    int,
    Option(
        "--streams",
        help="How many parts of a backup are transferred at once.",
        parser=whole("--streams", 1, 4),
        metavar="N",
    ),
]
QuietOption: TypeAlias = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]
DataDirOption: TypeAlias = Annotated[
    Path | None,
    Option("--data-dir", help="Read the data directory of a stopped node instead of asking a server.", metavar="PATH"),
]
ClusterDirOption: TypeAlias = Annotated[Path, Option("--dir", help="The cluster's directory.", metavar="PATH")]


def as_of(client: Client, at: Moment | None) -> Client:
    """Return a reader at the time of ``--at``, with tables by the names that they had then."""
    return client if at is None else client.at(at)


def chosen_columns(text: str | None) -> list[str] | None:
    """Return the fields of ``--columns``. Raises InvalidArgument for none, or for one without a name."""
    from cortado.errors import InvalidArgument

    if text is None:
        return None
    names = [each.strip() for each in text.split(",")]
    if not all(names):
        raise InvalidArgument("--columns", "must name fields, separated by commas", repr(text))
    return names


def put_mode(*, if_absent: bool, if_present: bool, **others: bool) -> PutMode:
    """Return the mode of a put of many. ``others`` are further conditions; raise InvalidArgument for more than one."""
    conditions = {"if_absent": if_absent, "if_present": if_present, **others}
    first, *more = [f"--{name.replace('_', '-')}" for name, is_given in conditions.items() if is_given] or [""]
    refuse_beside(first, dict.fromkeys(more, True))
    return "insert" if if_absent else "replace" if if_present else "upsert"


def refuse_beside(option: str, others: Mapping[str, bool]) -> None:
    """Raise InvalidArgument for the first of ``others`` that is given beside ``option``."""
    from cortado.errors import InvalidArgument

    for name in (name for name, is_given in others.items() if is_given):
        raise InvalidArgument(name, f"must not be given together with {option}")
