r"""``cortado kv``: the key-value API.

Keys and values are text; ``\xNN`` stands for a byte, and ``\\`` for a backslash, both ways.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import count as count_from
from itertools import islice
from typing import Annotated, Any, Final, TypeAlias

from cortado.errors import CortadoError, InvalidArgument, NotFound
from cortado.store.cli import failures
from cortado.store.cli.asking import DryRunOption, YesOption, confirm, show_dry_delete
from cortado.store.cli.commands.table import SHOWN_MAX, AtOption, LimitOption, ReverseOption
from cortado.store.cli.input import STDIN, read_bytes, read_documents
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import KeyValue, KvPair
from cortado.store.client.put_mode import PutMode
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes
from cortado.store.transfer.pairs import pair_target, pair_to_json
from cortado.store.transfer.stores import PairStore

_PAIRS_AT_ONCE: Final = 1_000
_REFUSED_SHOWN: Final = 1_000

NamespaceArgument: TypeAlias = Annotated[str, Argument(help="The namespace.", metavar="NAMESPACE")]
KeyArgument: TypeAlias = Annotated[str, Argument(help=r"The key; \xNN is a byte, \\ a backslash.", metavar="KEY")]
MatchOption: TypeAlias = Annotated[
    str | None, Option("--if-match", help="Only if the key's etag is this one.", metavar="ETAG")
]
FromOption: TypeAlias = Annotated[str | None, Option("--from", help="Where the range begins.", metavar="KEY")]
ToOption: TypeAlias = Annotated[str | None, Option("--to", help="Where the range ends, exclusive.", metavar="KEY")]
PrefixOption: TypeAlias = Annotated[str | None, Option("--prefix", help="All keys that begin so.", metavar="TEXT")]


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
    key: KeyArgument,
    at: AtOption = None,
    raw: Annotated[bool, Option("--raw", help="Write the value's bytes as they are, and no more.")] = False,
) -> None:
    """Show the value of a key. Exit code 3 where there is none."""
    with session.client() as client:
        found = client.kv(namespace).get(parse_bytes(key, "KEY"), at=at)
    if found is None:
        raise NotFound("key", f"{key} in namespace {namespace}")
    if raw:
        sys.stdout.buffer.write(found.value)
        sys.stdout.buffer.flush()
    elif session.as_json:
        session.show.json(_pair_json(found))
    else:
        session.show.line(bytes_to_text(found.value))


@command(
    "kv scan",
    examples="""
        cortado kv scan sessions
        cortado kv scan sessions --prefix user: --limit 10
        cortado kv scan sessions --from a --to n --reverse -o json
    """,
)
def scan(
    session: Session,
    namespace: NamespaceArgument,
    start: FromOption = None,
    end: ToOption = None,
    prefix: PrefixOption = None,
    reverse: ReverseOption = False,
    limit: LimitOption = None,
    at: AtOption = None,
) -> None:
    """Show the pairs of a range in the order of their keys, as of one timestamp."""
    shown_max = SHOWN_MAX if limit is None and not session.as_json else None
    with session.client() as client:
        found = client.kv(namespace).scan(
            parse_bytes(start or "", "--from"),
            parse_bytes(end or "", "--to"),
            prefix=None if prefix is None else parse_bytes(prefix, "--prefix"),
            reverse=reverse,
            limit=limit if shown_max is None else shown_max + 1,
            at=at,
        )
        if session.as_json:
            for pair in found:
                session.show.json(_pair_json(pair))
            return
        pairs = list(found)
    shown = pairs if shown_max is None else pairs[:shown_max]
    rows = [(bytes_to_text(pair.key), bytes_to_text(pair.value), pair.etag) for pair in shown]
    session.show.table(("key", "value", "etag"), rows)
    more = ", and there are more (--limit)" if len(pairs) > len(shown) else ""
    session.show.note(count(len(shown), "pair") + more)


@command(
    "kv put",
    examples="""
        cortado kv put sessions user:1 'signed in'
        cortado kv put sessions user:1 --file value.bin
        cortado kv put sessions user:1 'signed in' --if-absent
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
        str | None, Option("--file", "-f", help="Take a file's bytes; - for stdin.", metavar="PATH")
    ] = None,
    if_absent: Annotated[bool, Option("--if-absent", help="Only if the key does not exist.")] = False,
    if_present: Annotated[bool, Option("--if-present", help="Only if the key exists.")] = False,
    if_match: MatchOption = None,
) -> None:
    """Store a value under a key, or as many pairs as a file or standard input holds (JSON, one a line).

    Pairs are what get and scan show with -o json. Of many, a bad one is refused by itself, and the exit code is
    that of the first refusal.
    """
    if key is None:
        if if_match is not None:
            raise InvalidArgument("--if-match", "must be given with a KEY")
        mode: PutMode = "insert" if if_absent else "replace" if if_present else "upsert"
        with session.client() as client:
            _put_pairs(session, client.kv(namespace), read_documents(file or STDIN), mode)
        return
    if (value is None) == (file is None):
        raise InvalidArgument("VALUE", "must be given, or else --file")
    content = read_bytes(file or STDIN) if value is None or value == STDIN else parse_bytes(value, "VALUE")
    with session.client() as client:
        etag = client.kv(namespace).put(
            parse_bytes(key, "KEY"), content, if_absent=if_absent, if_present=if_present, if_match=if_match
        )
    _show_etag(session, etag)


@command(
    "kv cas",
    examples="""
        cortado kv cas counters visits 41 42
    """,
)
def cas(
    session: Session,
    namespace: NamespaceArgument,
    key: KeyArgument,
    expected: Annotated[str, Argument(help="The value that the key must have.", metavar="EXPECTED")],
    value: Annotated[str, Argument(help="The value to store then.", metavar="VALUE")],
) -> None:
    """Compare and set: store a value only where the key holds the expected one. Exit code 4 where it does not."""
    with session.client() as client:
        etag = client.kv(namespace).put(
            parse_bytes(key, "KEY"), parse_bytes(value, "VALUE"), if_value=parse_bytes(expected, "EXPECTED")
        )
    _show_etag(session, etag)


@command(
    "kv delete",
    examples="""
        cortado kv delete sessions user:1
        cortado kv delete sessions user:1 --if-match 0.1763643600000.2
        cortado kv delete sessions user:1 --dry-run
    """,
)
def delete(
    session: Session,
    namespace: NamespaceArgument,
    key: KeyArgument,
    if_match: MatchOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Delete a key. It is no error where there is none."""
    with session.client() as client:
        if dry_run:
            found = client.kv(namespace).get(parse_bytes(key, "KEY"))
            show_dry_delete(session, None if found is None else found.etag, if_match)
            return
        existed = client.kv(namespace).delete(parse_bytes(key, "KEY"), if_match=if_match)
    if session.as_json:
        session.show.json({"existed": existed})
    else:
        session.show.line("deleted" if existed else "there was no such key")


@command(
    "kv delete-range",
    examples="""
        cortado kv delete-range sessions --prefix user:
        cortado kv delete-range sessions --from a --to n
        cortado kv delete-range sessions --prefix '' --dry-run
        cortado kv delete-range sessions --prefix '' --yes
    """,
)
def delete_range(
    session: Session,
    namespace: NamespaceArgument,
    start: FromOption = None,
    end: ToOption = None,
    prefix: PrefixOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Delete a whole range at once; refused where it holds more keys than one commit may change.

    A range must be given; --prefix '' is the whole namespace.
    """
    lower, upper = parse_bytes(start or "", "--from"), parse_bytes(end or "", "--to")
    given_prefix = None if prefix is None else parse_bytes(prefix, "--prefix")
    if prefix is None and not lower and not upper:
        raise InvalidArgument("range", "must be given: --from, --to or --prefix; --prefix '' is the whole namespace")
    with session.client() as client:
        kv = client.kv(namespace)
        if dry_run:
            _show_dry_range(session, kv.scan(lower, upper, prefix=given_prefix))
            return
        confirm(f"Delete {_range_text(start, end, prefix)} of namespace {namespace}?", yes=yes)
        deleted = kv.delete_range(lower, upper, prefix=given_prefix)
    if session.as_json:
        session.show.json({"deleted": deleted})
    else:
        session.show.line(f"{count(deleted, 'key')} deleted")


def _range_text(start: str | None, end: str | None, prefix: str | None) -> str:
    if prefix is not None:
        return f"all keys that begin with {prefix}" if prefix else "all keys"
    bounds = [f"from {start}" if start else "", f"up to {end}" if end else ""]
    return f"all keys {' '.join(filter(None, bounds))}"


def _show_dry_range(session: Session, pairs: Iterable[KvPair]) -> None:
    """How many keys there are, the first and the last."""
    found, first, last = 0, b"", b""
    for pair in pairs:
        first, last = (pair.key if not found else first), pair.key
        found += 1
    if session.as_json:
        session.show.json({"would_delete": found})
        return
    keys = f": {bytes_to_text(first)} to {bytes_to_text(last)}" if found else ""
    session.show.line(f"would delete {count(found, 'key')}{keys}")
    session.show.note("nothing was changed")


def _pair_json(pair: KvPair) -> dict[str, Any]:
    return {**pair_to_json(pair.key, pair.value), "etag": pair.etag}


def _put_pairs(session: Session, kv: KeyValue, values: Iterator[Any], mode: PutMode) -> None:
    refused: list[tuple[int, CortadoError]] = []
    target, store, written = pair_target(kv.namespace), PairStore(kv, mode), 0
    places = count_from(0)
    while numbered := list(islice(zip(places, values, strict=False), _PAIRS_AT_ONCE)):
        bodies, rows = [], []
        for place, value in numbered:
            try:
                bodies.append(target.body_of(value))
                rows.append(place)
            except CortadoError as problem:
                refused.append((place, problem))
        stored = store.put(bodies)
        refused += [(rows[row], error) for row, error in stored.errors]
        written += stored.written
    if session.as_json:
        session.show.json({"written": written, "refused": len(refused)})
    else:
        session.show.line(f"{count(written, 'pair')} stored" + (f", {len(refused):,} refused" if refused else ""))
    for place, error in sorted(refused, key=lambda each: each[0])[:_REFUSED_SHOWN]:
        failures.report(error, as_json=session.as_json, pair=place)
    if len(refused) > _REFUSED_SHOWN:
        session.show.note(f"... and {len(refused) - _REFUSED_SHOWN:,} more")
    if refused:
        raise failures.CheckFailed(failures.exit_code_of(min(refused, key=lambda each: each[0])[1]))


def _show_etag(session: Session, etag: str) -> None:
    if session.as_json:
        session.show.json({"etag": etag})
    else:
        session.show.line(f"stored, with etag {etag}")
