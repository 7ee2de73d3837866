"""Inspection of a cluster: the log and versions of a running node and of its directory. A scrub of three replicas names
the key that a bit has hidden, and the replica; a rebuild makes it whole."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cortado.store.cli.app import run
from cortado.store.client import Client, Index
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.codec import encode_part
from cortado.store.keys.keyspace import kv_key, row_prefix, table_id_of
from cortado.store.keys.types import KeyType
from cortado.store.mvcc.versions import suffix_of
from support.cluster import Cluster, running_cluster
from support.engines import open_made
from support.server_process import wait_until

pytestmark = pytest.mark.process

SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "string"}, {"name": "text", "type": "string"}],
}
PAIR, ROW, DAMAGED = b"user-070", "row-110", b"damaged"
VALUE = b"the value of the pair that will be damaged"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("scrub")) as made:
        yield made


@pytest.fixture(scope="module")
def etags(cluster: Cluster) -> dict[object, str]:
    """Return the etags of the items that will be damaged."""
    found: dict[object, str] = {}
    with Client(cluster.endpoints) as client:
        client.create_database("shop")
        client.schemas.register("shop.rows", SCHEMA)
        client.create_table("shop.rows", ["id"], indexes=[Index("by_text", ["text"])])
        kv, rows = client.kv("sessions"), client.table("shop.rows")
        for number in range(20):
            key, row = b"user-%02d0" % number, f"row-{number:02d}0"
            found[key] = kv.put(key, b"v")
            found[row] = rows.put({"id": row, "text": "t"})
        kv.delete(b"user-010")
        found[DAMAGED] = kv.put(DAMAGED, VALUE)
    cluster.wait_converged()
    return found


def ended(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, run in this process, without questions to a user."""
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = run(arguments)
    finally:
        sys.stdin = stdin
    return code, out.getvalue(), err.getvalue()


def cortado(*arguments: str, expect: int = 0) -> list[Any]:
    """The JSON lines of a command's output."""
    code, out, err = ended(*arguments, "-o", "json")
    assert code == expect, f"{code}: {out}\n{err}"
    return [json.loads(line) for line in out.splitlines()]


def flip_stored(data_dir: Path, key: bytes, etag: str, value: bytes, *, in_value: bool = False) -> None:
    """Flip a bit of one version where it lies among the data; the log, which has the same bytes, is left alone."""
    item = key + suffix_of(Timestamp.parse(etag)) + b"P" + value
    # The last byte of a key, before the two that end it, goes from 0 to a blank: still between its neighbours.
    place = len(item) - 1 if in_value else len(key) - 3
    data_file = data_dir / "engine" / "data.mdb"
    content = bytearray(data_file.read_bytes())
    found = content.find(item)
    assert found >= 0
    while found >= 0:
        content[found + place] ^= 0x10
        found = content.find(item, found + 1)
    data_file.write_bytes(content)


def test_a_running_node_and_its_directory_show_the_same(cluster: Cluster, etags: dict[object, str]) -> None:
    victim = cluster.follower()
    asked = (
        ("debug", "raft"),
        ("debug", "raft", "--start", "3", "--limit", "30"),
        ("debug", "mvcc", "kv", "sessions", "user-010"),
        ("debug", "mvcc", "row", "shop.rows", ROW),
        ("debug", "mvcc", "index", "shop.rows", "by_text", "t", "--limit", "3"),
    )
    running = [cortado(*each, "-e", f"{cluster.addresses[victim]},{cluster.endpoints}") for each in asked]
    assert cluster.nodes[victim].stop() == 0
    before = {path: path.read_bytes() for path in cluster.nodes[victim].data_dir.rglob("*") if path.is_file()}
    stopped = [cortado(*each, "--data-dir", str(cluster.nodes[victim].data_dir)) for each in asked]
    assert stopped == running
    assert before == {path: path.read_bytes() for path in before}, "nothing was changed"
    cluster.start(victim)
    cluster.wait_converged()
    cortado("debug", "raft", "--data-dir", str(cluster.nodes[victim].data_dir), expect=8)
    state, *entries = running[1]
    assert (state["state"]["applied_index"], len(entries)) == (state["state"]["last_index"], 30)
    pair, row = running[2], running[3]
    assert [each["kind"] for each in pair] == ["delete", "put"]
    assert row[0]["value"] == {"id": ROW, "text": "t"}
    assert row[0]["timestamp"] == etags[ROW]


def test_every_change_is_found_in_the_log_under_its_timestamp(cluster: Cluster, etags: dict[object, str]) -> None:
    _, *lines = cortado("debug", "raft", "--start", "1", "-e", cluster.endpoints)
    commands = [command for line in lines for command in line["entry"].get("commands", [])]
    by_ts = {each["timestamp"]: each for each in commands}
    assert [change["text"].rpartition(" @")[0] for change in by_ts[etags[ROW]]["changes"]] == [
        f'index shop.rows.by_text ("t", "{ROW}")',
        f'row shop.rows ("{ROW}")',
    ]
    assert len(by_ts[etags[PAIR]]["request_id"]) == 40
    first = lines[0]["entry"]["index"]
    assert [line["entry"]["index"] for line in lines] == list(range(first, first + len(lines)))
    assert {line["entry"]["kind"] for line in lines} >= {"data", "configuration"}


def test_bits_in_keys_and_in_a_value_are_found_named_and_mended(cluster: Cluster, etags: dict[object, str]) -> None:
    def scrub(expect: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        *found, verdict = cortado("scrub", "-e", cluster.endpoints, "--rate", "0", expect=expect)
        return [each["finding"] for each in found], verdict["scrub"]

    found, verdict = scrub(expect=0)
    assert (found, verdict["replicas"], verdict["tables"]) == ([], ["n1", "n2", "n3"], 1)
    victim = cluster.follower()
    data_dir = cluster.nodes[victim].data_dir
    assert cluster.nodes[victim].stop() == 0
    pair_key = kv_key("sessions", PAIR)
    row_key = row_prefix(table_id_of(1, 1)) + encode_part(ROW, KeyType.STRING)
    flip_stored(data_dir, pair_key, etags[PAIR], b"v")
    flip_stored(data_dir, row_key, etags[ROW], b"")
    flip_stored(data_dir, kv_key("sessions", DAMAGED), etags[DAMAGED], VALUE, in_value=True)
    assert len(cortado("scrub", "--data-dir", str(data_dir), expect=8)) == 4, "without others, three checksums"
    cluster.start(victim)
    cluster.wait_converged()
    wait_until(lambda: not cluster.statuses()[victim].damaged, "what has a wrong checksum is repaired by itself")
    assert cluster.statuses()[victim].repaired == 3
    assert scrub(expect=0)[0] == []

    # Sectors that a disk lost as a whole have no checksum.
    assert cluster.nodes[victim].stop() == 0
    lost = (pair_key + suffix_of(Timestamp.parse(str(etags[PAIR]))), row_key + suffix_of(Timestamp.parse(etags[ROW])))
    engine = open_made(data_dir)
    with engine.write() as txn:
        assert all(txn.delete(Space.DATA, each) for each in lost)
    engine.close()
    cluster.start(victim)
    cluster.wait_converged()
    found, verdict = scrub(expect=8)
    assert {tuple(each["replicas"]) for each in found} == {(victim,)}
    missing = {bytes.fromhex(each["key"])[:-12]: each for each in found if each["kind"] == "MISSING"}
    assert set(missing) == {pair_key, row_key}
    assert f'row shop.rows ("{ROW}")' in missing[row_key]["text"]
    others = " and ".join(name for name in ("n1", "n2", "n3") if name != victim)
    assert missing[row_key]["message"] == f"not found here; {others} hold it"
    address = cluster.addresses[victim]
    assert cortado("debug", "mvcc", "kv", "sessions", PAIR.decode(), "-e", address) == [], "a read would miss it"

    assert cortado("member", "rebuild", victim, "--dry-run", "-e", cluster.endpoints)[0]["would_rebuild"] == victim
    cortado("member", "rebuild", victim, "-e", cluster.endpoints, expect=2)
    assert cortado("member", "rebuild", victim, "--yes", "-e", cluster.endpoints) == [{"rebuilt": victim}]
    cluster.wait_converged()
    assert scrub(expect=0)[0] == []


def test_a_replica_that_is_down_is_not_taken_for_a_sound_one(cluster: Cluster) -> None:
    victim = cluster.follower()
    cluster.nodes[victim].stop()
    code, out, err = ended("scrub", "-e", cluster.endpoints, "--rate", "0")
    assert code == 6
    assert "no problems" in out
    assert f"not everything was checked: {victim}: " in err
