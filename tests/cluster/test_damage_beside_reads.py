"""Bits that turn on the disk of a node alone: every read is right, or DATA_LOSS, and never wrong in silence.

A bit of a stored key is worse than one of a value. Under its own key the item is missing, so a read that trusted its
search would miss a row, or show an older or deleted version. Under another key it is an item that was never written. A
single node has no other copy, so the damage stays. Meanwhile everything is read in every possible way, and compared
with a twin that has only acknowledged writes.

Bits of the ids of remembered requests are flipped in ``test_damaged_requests.py``.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cortado.errors import DataLoss
from cortado.store.cli.app import run
from cortado.store.client import Client, Deleted, Document, KvPair, Resolved
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.dump import dump
from support.acknowledged import BY_ID, GROUPS, NAMESPACE, TABLES, Acknowledged, fill
from support.engines import open_made
from support.flips import flip_bit, leaf_places_of, places_of
from support.server_process import running_server

pytestmark = [pytest.mark.long, pytest.mark.process]

SEEDS = (4, 7, 11, 12, 26)
"""They flip keys of pairs, of rows and of two indexes, and values of pairs and rows; a read can meet each of them."""
VERIFY_ALL = ("--limit.walk-ms", "60000")
"""However slow the machine is, all that is stored is verified before anything is served, as it is of so little."""
RANGES = [(b"", b""), (b"k05", b"k15"), (b"k2", b"k3"), (b"k40", b""), (b"", b"k09")]
EXIT_DATA_LOSS = 8
CLOCK_BYTES = 9
"""At the end of a stored key: the bytes of its timestamp that differ between runs. The bytes before them are the same
in each run, so that a bit has the same effect. They include the epoch: its bits move a version into the future."""


class Read(NamedTuple):
    what: str
    answer: Callable[[], object]
    right: object


# --- the reads -----------------------------------------------------------------------------------------------------


def reads(client: Client, acknowledged: Acknowledged, directory: Path) -> Iterator[Read]:
    for at in (None, *acknowledged.marks):
        yield from reads_of_pairs(client, acknowledged, at)
        for table in TABLES:
            yield from reads_of_rows(client, acknowledged, table, at)
            yield from index_scans(client, acknowledged, table, at)
            yield export(client, acknowledged, table, at, directory / "exported.jsonl")
    for after in (Timestamp.parse("0.0.0"), *acknowledged.marks):
        yield from watches(client, acknowledged, after)


def reads_of_pairs(client: Client, acknowledged: Acknowledged, at: Timestamp | None) -> Iterator[Read]:
    kv, state = client.kv(NAMESPACE), acknowledged.pairs.at(at)
    pairs = {key: KvPair(key, *state[key]) for key in sorted(state)}
    for key in (*acknowledged.pairs.keys(), b"never written"):
        yield Read(f"get {key!r} {at=}", partial(kv.get, key, at=at), pairs.get(key))
    for reverse, (start, end) in product((False, True), RANGES):
        found = in_order((pairs[key] for key in pairs if start <= key and (not end or key < end)), reverse)
        scan, of = partial(listed, kv.scan, start, end, reverse=reverse, at=at), f"{start!r} {end!r} {reverse=} {at=}"
        yield Read(f"scan {of}", scan, found)
        yield Read(f"scan of five {of}", partial(scan, limit=5), found[:5])
        yield Read(f"scan of keys {of}", partial(scan, keys_only=True), [each._replace(value=b"") for each in found])


def reads_of_rows(client: Client, acknowledged: Acknowledged, table: str, at: Timestamp | None) -> Iterator[Read]:
    rows, history, of = client.table(table), acknowledged.rows[table], f"{table} {at=}"
    state, keys = history.at(at), history.keys()
    for key in keys:
        yield Read(f"get {key} {of}", partial(got, rows.get, key, at), state.get(key))
    yield Read(f"get_many {of}", partial(versions, rows.get_many, keys, at=at), [state.get(key) for key in keys])
    for reverse in (False, True):
        found = in_order((state[key] for key in sorted(state)), reverse)
        options, of_scan = {"reverse": reverse, "at": at}, f"{reverse=} {of}"
        yield Read(f"scan {of_scan}", partial(versions, rows.scan, **options), found)
        yield Read(f"scan of four {of_scan}", partial(versions, rows.scan, limit=4, **options), found[:4])
        matching = [each for each in found if each[0]["group"] > 1]
        yield Read(f"filtered {of_scan}", partial(versions, rows.scan, filter="group > 1", **options), matching)
        ids = [{"id": row["id"]} for row, _ in found]
        yield Read(f"projected {of_scan}", partial(values, rows.scan, columns=["id"], **options), ids)


def index_scans(client: Client, acknowledged: Acknowledged, table: str, at: Timestamp | None) -> Iterator[Read]:
    scan, history = client.table(table).scan, acknowledged.rows[table]
    found = [row for row, _ in history.at(at).values()]
    for reverse in (False, True):
        by_group, of = partial(values, scan, index="by_group", reverse=reverse, at=at), f"{reverse=} {table} {at=}"
        ordered = in_order(sorted(found, key=itemgetter("group", "id")), reverse)
        yield Read(f"by_group {of}", by_group, ordered)
        covered = [{"group": row["group"], "id": row["id"]} for row in ordered]
        yield Read(f"covered by_group {of}", partial(by_group, columns=["group", "id"]), covered)
        for group in GROUPS:
            of_group = [row for row in ordered if row["group"] == group]
            yield Read(f"{group=} {of}", partial(by_group, prefix=(group,)), of_group)
    if table == BY_ID:
        for label in sorted({change.value["label"] for change in history.changes if change.value is not None}):
            labelled = [row for row in found if row["label"] == label]
            look_up = partial(values, scan, index="by_label", prefix=(label,), at=at)
            yield Read(f"{label=} {table} {at=}", look_up, labelled)


def export(client: Client, acknowledged: Acknowledged, table: str, at: Timestamp | None, file: Path) -> Read:
    def exported() -> list[Any]:
        file.unlink(missing_ok=True)
        code = run(["export", table, str(file), *(() if at is None else ("--at", str(at))), "-e", client.endpoint])
        if code == EXIT_DATA_LOSS:
            raise DataLoss(table, "as the command line said")
        assert code == 0
        return [json.loads(line) for line in file.read_text().splitlines()]

    state = acknowledged.rows[table].at(at)
    return Read(f"export {table} {at=}", exported, [state[key][0] for key in sorted(state)])


def watches(client: Client, acknowledged: Acknowledged, after: Timestamp) -> Iterator[Read]:
    until = acknowledged.marks[-1]
    for start, end in RANGES:
        changes = acknowledged.pairs.after(after)
        right = [each for each in changes if start <= each[0] and (not end or each[0] < end)]
        watch = partial(client.kv(NAMESPACE).watch, start, end, after=after, until=until)
        yield Read(f"watch {start!r} {end!r} {after=}", partial(seen, watch), right)
    for table, history in acknowledged.rows.items():
        watch_rows = partial(client.table(table).watch, after=after, until=until)
        yield Read(f"watch {table} {after=}", partial(seen, watch_rows), history.after(after))


def in_order(found: Iterable[Any], reverse: bool) -> list[Any]:
    return list(found)[:: -1 if reverse else 1]


def listed(read: Callable[..., Iterable[object]], *arguments: object, **options: object) -> list[object]:
    return list(read(*arguments, **options))


def got(get: Callable[..., Document[Any] | None], key: object, at: Timestamp | None) -> object:
    return version(get(key, at=at))


def version(document: Document[Any] | None) -> object:
    return None if document is None else (document.value, document.etag)


def versions(
    read: Callable[..., Iterable[Document[Any] | None]], *arguments: object, **options: object
) -> list[object]:
    return [version(document) for document in read(*arguments, **options)]


def values(read: Callable[..., Iterable[Document[Any]]], **options: object) -> list[object]:
    return [document.value for document in read(**options)]


def seen(watch: Callable[[], Any]) -> list[object]:
    """Keys and values, None for a deletion; a pair's value is bytes, a row's is in a document."""
    with watch() as events:
        return [
            (event.key, None if isinstance(event, Deleted) else getattr(event.value, "value", event.value))
            for event in events
            if not isinstance(event, Resolved)
        ]


# --- the damage ----------------------------------------------------------------------------------------------------


class Item(NamedTuple):
    key: bytes
    value: bytes


def kind(key: bytes) -> str:
    return {b"k": "pair", b"m": "catalogue"}.get(key[:1], "row" if key[5:6] == b"r" else "entry of an index")


def stored_items(data_dir: Path) -> dict[str, list[Item]]:
    """Return all versions of all keys, by their owners."""
    items: dict[str, list[Item]] = {}
    engine = open_made(data_dir)
    with engine.read() as txn:
        for key, value in txn.walk(Space.DATA, b"\0"):
            items.setdefault(kind(key), []).append(Item(bytes(key), bytes(value())))
    engine.close()
    return items


def damage(draw: random.Random, data_file: Path, items: dict[str, list[Item]]) -> Iterator[str]:
    """Flips a bit of the key, of the value or of each, in one to three items; yields the flipped items."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        key, value = draw.choice(items[draw.choice(sorted(items))])
        part = draw.choice(("key", "key", "value", "both"))
        # An overflow page holds a large value away from its key. Both places are sought before anything is flipped.
        values_at = [at + len(key) for at in leaf_places_of(data_file, key + value)] or places_of(data_file, value)
        if part != "value":
            bit = draw.randrange(8 * (len(key) - CLOCK_BYTES))
            flip_bit(data_file, leaf_places_of(data_file, key), bit)
            yield f"bit {bit} of the key {dump(key)}"
        if part != "key":
            bit = draw.randrange(8 * len(value))
            flip_bit(data_file, values_at, bit)
            yield f"bit {bit} of the value at {dump(key)}"


# --- the test ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    data_dir: Path
    acknowledged: Acknowledged
    items: dict[str, list[Item]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The directory of a stopped server, which no test damages. Without damage all reads of it were right."""
    directory = tmp_path_factory.mktemp("written")
    with running_server(directory / "data") as server, Client(server.endpoint, timeout_s=10) as client:
        acknowledged = fill(client, seed=1)
        for read in reads(client, acknowledged, directory):
            assert read.answer() == read.right, read.what
        assert server.stop() == 0
    return Written(directory / "data", acknowledged, stored_items(directory / "data"))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_read_beside_damage_is_right_or_data_loss(written: Written, tmp_path: Path, seed: int) -> None:
    shutil.copytree(written.data_dir, tmp_path / "data")
    flipped = list(damage(random.Random(seed), tmp_path / "data" / "engine" / "data.mdb", written.items))
    right, lost, wrong = 0, 0, list[str]()
    with running_server(tmp_path / "data", *VERIFY_ALL) as server, Client(server.endpoint, timeout_s=10) as client:
        for read in reads(client, written.acknowledged, tmp_path):
            try:
                answer = read.answer()
            except DataLoss:
                lost += 1
                continue
            if answer == read.right:
                right += 1
            else:
                wrong.append(f"{read.what}: {answer}, not {read.right}")
        assert server.stop() == 0
    assert not wrong, f"after {flipped}"
    assert "Traceback" not in server.log
    assert lost, f"no read met {flipped}"
    assert right, f"everything is out of reach after {flipped}"
