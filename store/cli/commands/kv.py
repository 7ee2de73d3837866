r"""``cortado kv``: the key-value API.

Keys and values are text; ``\xNN`` stands for a byte, and ``\\`` for a backslash, both ways.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.additions import Addition
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm, dry_delete
from cortado.store.cli.common_options import (
    SHOWN_MAX,
    AtOption,
    EtagOption,
    IfAbsentOption,
    IfPresentOption,
    LimitOption,
    MaxBadOption,
    NamespaceArgument,
    PairKeyArgument,
    PrefixOption,
    ReverseOption,
    TtlOption,
    put_mode,
)
from cortado.store.cli.failures import OK
from cortado.store.cli.numbers import expires_of
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes

if TYPE_CHECKING:
    from cortado.store.client import KeyValue, KvPair
    from cortado.store.client.put_mode import PutMode

StartOption: TypeAlias = Annotated[str | None, Option("--start", help="Lower bound.", metavar="KEY")]
EndOption: TypeAlias = Annotated[str | None, Option("--end", help="Upper bound, exclusive.", metavar="KEY")]


@command(
    "kv get",
    examples="""
        cortado kv get sessions user:1
        cortado kv get sessions user:1 --raw > value.bin
        cortado kv get sessions user:1 --at 2025-11-20T13:00:00Z -o json
    """,
)
def get(
    session: Session,
    namespace: NamespaceArgument,
    key: PairKeyArgument,
    at: AtOption = None,
    raw: Annotated[bool, Option("--raw", help="Write the bytes of the value as they are, and nothing else.")] = False,
) -> Answer | None:
    """Show the value of a key. Exit code 3 if there is none."""
    with session.client() as client:
        found = client.kv(namespace).get(parse_bytes(key, "KEY"), at=at)
    if found is None:
        raise NotFound("key", f"{key} in namespace {namespace}")
    if raw:
        sys.stdout.buffer.write(found.value)
        sys.stdout.buffer.flush()
        return None
    return Said(bytes_to_text(found.value), _json(found))


@command(
    "kv scan",
    examples="""
        cortado kv scan sessions
        cortado kv scan sessions --prefix user: --limit 10
        cortado kv scan sessions --prefix user: --keys-only
        cortado kv scan sessions --count
        cortado kv scan sessions --start a --end n --reverse -o json
    """,
)
def scan(
    session: Session,
    namespace: NamespaceArgument,
    lower: StartOption = None,
    upper: EndOption = None,
    prefix: PrefixOption = None,
    reverse: ReverseOption = False,
    limit: LimitOption = None,
    at: AtOption = None,
    keys_only: Annotated[bool, Option("--keys-only", help="Show no values; the server does not send them.")] = False,
    count_only: Annotated[bool, Option("--count", help="Show only the number of keys.")] = False,
) -> None:
    """Show the pairs of a range in key order, as of one timestamp."""
    start, end, beginning = _range(lower, upper, prefix)
    shown_max = SHOWN_MAX if limit is None and not session.as_json and not count_only else None
    with session.client() as client:
        found = client.kv(namespace).scan(
            start,
            end,
            prefix=beginning,
            reverse=reverse,
            limit=limit if shown_max is None else shown_max + 1,
            at=at,
            keys_only=keys_only or count_only,
        )
        if count_only:
            number = sum(1 for _ in found)
            session.answer(Said(str(number), {"count": number}))
        else:
            session.answer(_Pairs(found, shown_max, keys_only=keys_only))


@command(
    "kv put",
    examples="""
        cortado kv put sessions user:1 'signed in'
        cortado kv put sessions user:1 --file value.bin
        cortado kv put sessions user:1 'signed in' --if-absent
        cortado kv put sessions user:1 'signed out' --if-value 'signed in'
        cortado kv put sessions user:1 'signed in' --ttl 30m
        cortado kv scan sessions -o json | cortado kv put sessions_copy
    """,
)
def put(
    session: Session,
    namespace: NamespaceArgument,
    key: Annotated[
        str | None,
        Argument(help=r"The key; \xNN is a byte, \\ a backslash.", show_default="read pairs as JSON", metavar="KEY"),
    ] = None,
    value: Annotated[
        str | None, Argument(help=r"The value; \xNN is a byte, - is standard input.", metavar="VALUE")
    ] = None,
    file: Annotated[
        str | None, Option("--file", "-f", help="Read this file; - for standard input.", metavar="PATH")
    ] = None,
    if_absent: IfAbsentOption = False,
    if_present: IfPresentOption = False,
    if_etag: EtagOption = None,
    if_value: Annotated[
        str | None, Option("--if-value", help="Only if the current value is this one.", metavar="VALUE")
    ] = None,
    ttl_ms: TtlOption = None,
    max_bad: MaxBadOption = None,
) -> Answer | None:
    """Store a value under a key, or many pairs from a file or standard input (JSON, one a line).

    Pairs have the form that get and scan print with -o json. Several pairs are stored or refused one by one, and
    counted; a bad line counts as refused. The exit code is that of the first refusal, 4 if a condition does not hold.
    """
    of_one = {"--if-etag": if_etag is not None, "--if-value": if_value is not None}
    mode = put_mode(
        if_absent=if_absent, if_present=if_present, if_etag=if_etag is not None, if_value=if_value is not None
    )
    if key is None:
        for option in (name for name, is_given in of_one.items() if is_given):
            raise InvalidArgument(option, "must be given with a KEY")
        _put_pairs(session, namespace, file, mode, ttl_ms, max_bad)
        return None
    if (value is None) == (file is None):
        either = "must be given, or else --file" if value is None else "must not be given together with --file"
        raise InvalidArgument("VALUE", either)
    from cortado.store.cli.input import STDIN, read_bytes

    content = read_bytes(file or STDIN) if value is None or value == STDIN else parse_bytes(value, "VALUE")
    with session.client() as client:
        etag = client.kv(namespace).put(
            parse_bytes(key, "KEY"),
            content,
            if_absent=if_absent,
            if_present=if_present,
            if_etag=if_etag,
            if_value=None if if_value is None else parse_bytes(if_value, "--if-value"),
            expires=expires_of(ttl_ms),
        )
    return Said(f"stored, with etag {etag}", {"etag": etag})


def _put_pairs(
    session: Session, namespace: str, file: str | None, mode: PutMode, ttl_ms: int | None, max_bad: int | None
) -> None:
    # A put of one pair needs none of it.
    from cortado.store.cli.input import STDIN, json_input
    from cortado.store.cli.loading import load_lines
    from cortado.store.transfer.pairs import pair_target
    from cortado.store.transfer.stores import PairStore

    with ExitStack() as stack:
        given = json_input(file or STDIN, stack)
        kv: KeyValue = stack.enter_context(session.client()).kv(namespace)
        load_lines(session, given, pair_target(kv.namespace), PairStore(kv, mode, expires_of(ttl_ms)), max_bad)


@command(
    "kv add",
    examples="""
        cortado kv add counters clicks
        cortado kv add counters seats --by 2 --min 0 --max 100
    """,
)
def add(session: Session, namespace: NamespaceArgument, key: PairKeyArgument, addition: Addition) -> Answer:
    """Add to a counter, within bounds, and show the sum. Exit code 4 if it would leave them.

    A counter is a value of 8 bytes, a signed number with its most significant byte first; without a pair it begins at
    0. Adds conflict with no other adds, however many callers there are.
    """
    with session.client() as client:
        total = client.kv(namespace).add(parse_bytes(key, "KEY"), addition.by, **addition.asked())
    return Said(str(total), {"sum": total})


@command(
    "kv delete",
    examples="""
        cortado kv delete sessions user:1
        cortado kv delete sessions user:1 --if-etag 0.1763643600000.2
        cortado kv delete sessions user:1 --dry-run
    """,
)
def delete(
    session: Session,
    namespace: NamespaceArgument,
    key: PairKeyArgument,
    if_etag: EtagOption = None,
    dry_run: DryRunOption = False,
) -> Answer:
    """Delete a key. Succeeds if it does not exist."""
    with session.client() as client:
        if dry_run:
            found = client.kv(namespace).get(parse_bytes(key, "KEY"))
            return dry_delete(None if found is None else found.etag, if_etag)
        existed = client.kv(namespace).delete(parse_bytes(key, "KEY"), if_etag=if_etag)
    return Said("deleted" if existed else "there was no such key", {"existed": existed})


@command(
    "kv delete-range",
    examples="""
        cortado kv delete-range sessions --prefix user:
        cortado kv delete-range sessions --start a --end n
        cortado kv delete-range sessions --prefix '' --dry-run
        cortado kv delete-range sessions --prefix '' --yes
    """,
)
def delete_range(
    session: Session,
    namespace: NamespaceArgument,
    lower: StartOption = None,
    upper: EndOption = None,
    prefix: PrefixOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Delete all keys of a range at once. Refused if it holds more keys than one commit may change.

    A range must be given; --prefix '' is the whole namespace.
    """
    start, end, beginning = _range(lower, upper, prefix)
    if beginning is None and not start and not end:
        raise InvalidArgument("range", "must be given: --start, --end or --prefix; --prefix '' is the whole namespace")
    with session.client() as client:
        kv = client.kv(namespace)
        if dry_run:
            return _dry_range(kv.scan(start, end, prefix=beginning, keys_only=True))
        confirm(f"Delete {_range_text(lower, upper, prefix)} of namespace {namespace}?", yes=yes)
        deleted = kv.delete_range(start, end, prefix=beginning)
    return Said(f"{count(deleted, 'key')} deleted", {"deleted": deleted})


def _range(lower: str | None, upper: str | None, prefix: str | None) -> tuple[bytes, bytes, bytes | None]:
    if prefix is not None and (lower is not None or upper is not None):
        raise InvalidArgument("--prefix", "must not be given together with --start or --end")
    start, end = parse_bytes(lower or "", "--start"), parse_bytes(upper or "", "--end")
    return start, end, None if prefix is None else parse_bytes(prefix, "--prefix")


def _range_text(lower: str | None, upper: str | None, prefix: str | None) -> str:
    if prefix is not None:
        return f"all keys with the prefix {prefix}" if prefix else "all keys"
    bounds = [f"from {lower}" if lower else "", f"up to {upper}" if upper else ""]
    return f"all keys {' '.join(filter(None, bounds))}"


def _dry_range(pairs: Iterable[KvPair]) -> Answer:
    """Return how many keys there are, the first and the last."""
    found, first, last = 0, b"", b""
    for pair in pairs:
        first, last = (pair.key if not found else first), pair.key
        found += 1
    keys = f": {bytes_to_text(first)} to {bytes_to_text(last)}" if found else ""
    return Said(f"would delete {count(found, 'key')}{keys}", {"would_delete": found}, note=UNCHANGED)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs as they come; in a table ``shown_max`` at most."""

    pairs: Iterable[KvPair]
    shown_max: int | None
    keys_only: bool
    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        return (_json(pair, keys_only=self.keys_only) for pair in self.pairs)

    def as_table(self, show: Renderer) -> None:
        found = list(self.pairs)
        shown = found[: self.shown_max]
        columns = ("key", "etag") if self.keys_only else ("key", "value", "etag")
        records = [_json(pair, keys_only=self.keys_only) for pair in shown]
        show.table(columns, [[record[name] for name in columns] for record in records])
        more = ", and there are more (--limit)" if len(found) > len(shown) else ""
        show.note(count(len(shown), "key" if self.keys_only else "pair") + more)


def _json(pair: KvPair, *, keys_only: bool = False) -> dict[str, Any]:
    value = {} if keys_only else {"value": bytes_to_text(pair.value)}
    expires = {"expires_ms": pair.expires_ms} if pair.expires_ms else {}
    return {"key": bytes_to_text(pair.key), **value, "etag": pair.etag, **expires}
