"""One flipped byte in the data file: every way to read the damaged item reports it by name; nothing else suffers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortado.errors import DataLoss
from cortado.store.client import Client, Index, Table
from cortado.store.engine.data_file import newest_meta
from cortado.store.replica.apply.applied_state import FORMAT
from support.damage import flip
from support.server_process import PATIENCE_S, ServerProcess

pytestmark = pytest.mark.process

ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "group", "type": "long"},
        {"name": "text", "type": "string"},
    ],
}
ROWS = 50
DAMAGED = 17


def row(number: int, length: int) -> dict[str, object]:
    return {"id": number, "name": f"n{number}", "group": number % 5, "text": f"text-of-{number:03}." + "x" * length}


def make(server: ServerProcess, length: int) -> None:
    with Client(server.endpoint) as client:
        client.create_database("d")
        client.schemas.register("d.rows", ROW)
        indexes = [Index("by_group", ["group"]), Index("by_name", ["name"], unique=True)]
        client.create_table("d.rows", ["id"], indexes=indexes)
        assert client.table("d.rows").put_many(row(number, length) for number in range(ROWS)).written == ROWS
        client.kv("n").put(b"whole", b"value")
        client.kv("n").put(b"the damaged key", b"value-of-the-pair" + b"y" * length)


@pytest.fixture(params=[20, 20_000], ids=["in a leaf page", "in an overflow page"])
def client(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of a server whose row 17 and one pair were damaged while it was stopped."""
    server = ServerProcess(tmp_path / "data")
    try:
        make(server.start(), request.param)
        assert server.stop() == 0
        data_file = tmp_path / "data" / "engine" / "data.mdb"
        flip(data_file, f"text-of-{DAMAGED:03}.".encode())
        flip(data_file, b"value-of-the-pair")
        with Client(server.start().endpoint, timeout_s=10) as opened:
            yield opened
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        server.kill()


READS: dict[str, Callable[[Table], object]] = {
    "get": lambda rows: rows.get(DAMAGED),
    "multi-get": lambda rows: rows.get_many([1, DAMAGED, 2]),
    "scan": lambda rows: list(rows.scan()),
    "reversed scan": lambda rows: list(rows.scan(reverse=True)),
    "filtered scan": lambda rows: list(rows.scan(filter="id = 3")),
    "projected scan": lambda rows: list(rows.scan(columns=["group"])),
    "index scan": lambda rows: list(rows.scan(index="by_group", prefix=(DAMAGED % 5,))),
    "unique look-up": lambda rows: list(rows.scan(index="by_name", prefix=(f"n{DAMAGED}",))),
    "update": lambda rows: rows.update(DAMAGED, {"group": 9}),
    "delete": lambda rows: rows.delete(DAMAGED),
    "insert": lambda rows: rows.put(row(DAMAGED, 1), if_absent=True),
}


def test_a_flipped_byte_is_data_loss_that_names_the_key_and_never_a_wrong_row(client: Client) -> None:
    rows = client.table("d.rows")
    for name, read in READS.items():
        with pytest.raises(DataLoss, match=str(DAMAGED)):
            pytest.fail(f"{name} returned {read(rows)}")
    with pytest.raises(DataLoss, match=str(DAMAGED)):
        client.verify_indexes("d.rows")
    kv = client.kv("n")
    for read_pair in (lambda: kv.get(b"the damaged key"), lambda: list(kv.scan()), lambda: list(kv.scan(reverse=True))):
        with pytest.raises(DataLoss, match="the damaged key"):
            read_pair()

    # Everything beside it is served, and writes go on.
    length = len(str(row(0, 0)["text"]))
    for number in (*range(DAMAGED), *range(DAMAGED + 1, ROWS)):
        found = rows.get(number)
        assert found is not None
        assert found.value["text"][:length] == row(number, 0)["text"]
    assert [each.value["id"] for each in rows.scan(end=(DAMAGED,))] == list(range(DAMAGED))
    assert len(list(rows.scan(index="by_group", prefix=((DAMAGED + 1) % 5,)))) == ROWS // 5
    rows.update(DAMAGED + 1, {"text": "new"})
    kv.put(b"the damaged key", b"written again")
    pair = kv.get(b"the damaged key")
    assert pair is not None
    assert pair.value == b"written again"


# --- a directory that cannot be served at all ------------------------------------------------------------------


def truncate(data_dir: Path) -> None:
    data_file = data_dir / "engine" / "data.mdb"
    meta = newest_meta(data_file)
    os.truncate(data_file, (meta.last_page + 1) * meta.page_size // 2)


def overwrite(data_dir: Path) -> None:
    data_file = data_dir / "engine" / "data.mdb"
    data_file.write_bytes(b"\xa5" * data_file.stat().st_size)


def with_damaged_pages(data_dir: Path) -> None:
    """Mark each leaf page as being written: LMDB would write into the map, which is a SIGSEGV."""
    data_file = data_dir / "engine" / "data.mdb"
    content = bytearray(data_file.read_bytes())
    for start in range(2 * 4_096, len(content), 4_096):
        if content[start + 10 : start + 12] == b"\x02\0":
            content[start + 10] |= 0x10
    data_file.write_bytes(content)


def of_another_version(data_dir: Path) -> None:
    (data_dir / "FORMAT").write_text("cortado-data 1\n")


def with_a_damaged_state(data_dir: Path) -> None:
    # The record behind this key begins with its format and eight bytes of the applied index.
    flip(data_dir / "engine" / "data.mdb", b"applied" + bytes([0, 0, 0, 1]) + FORMAT.to_bytes(1) + bytes(1))


@pytest.mark.parametrize(
    ("hurt", "said"),
    [
        (truncate, "truncated"),
        (overwrite, "no LMDB meta page"),
        (with_damaged_pages, "its flags are 0x0012, not 0x0002; replace this node: cortado member remove "),
        (of_another_version, "format version 1"),
        (with_a_damaged_state, "the node's state"),
    ],
)
def test_a_directory_that_cannot_be_served_is_refused_in_one_line(
    tmp_path: Path, hurt: Callable[[Path], None], said: str
) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        make(server.start(), 2_000)
        assert server.stop() == 0
    finally:
        server.kill()
    hurt(tmp_path / "data")
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("data.mdb")}
    command = [sys.executable, "-m", "cortado.store.cli", "server", "--data-dir", str(tmp_path / "data")]
    refused = subprocess.run(
        [*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert refused.returncode != 0
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert before == {path: path.read_bytes() for path in before}, "nothing was changed"
