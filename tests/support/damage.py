"""Damages copies of a data directory and uses each: run as a process of its own, since the tests look for crashes.

``python -m support.damage DIRECTORY FIRST LAST`` prints a line before and after each probe, so that the last line
before a crash names the seed that causes it.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import google_crc32c

from cortado.errors import DataDirectoryError, DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.verifying import VerifyingPass
from support.engines import open_lmdb

PAGE = 4_096
START, END = LogicalKey(b"a"), LogicalKey(b"z")
RAW_SPACES = (Space.META, Space.REQUESTS)
NOW = Timestamp(0, 1_000, 0)


def checked(key: bytes, payload: bytes) -> bytes:
    checksum: int = google_crc32c.value(key + payload)
    return payload + checksum.to_bytes(4, "little")


def build(path: Path) -> None:
    """Build several sub-databases, one three levels deep, with values on overflow pages, versions, deletes and free
    pages."""
    engine, draw = open_lmdb(path), random.Random(7)
    store = VersionStore(engine)
    keys = [LogicalKey(b"t%06d" % number + b"x" * draw.choice((3, 300))) for number in range(500)]
    for turn in range(12):
        mutations = Mutations()
        for key in draw.sample(keys, 60):
            if draw.random() < 0.2:
                mutations.delete(key)
            else:
                mutations.put(key, draw.randbytes(draw.choice((0, 20, 100, 100, 100, 700, 100 if turn % 3 else 9_000))))
        with engine.write() as txn:
            store.apply(txn, mutations, Timestamp(0, turn + 1, 0))
            for space in RAW_SPACES:
                for number in range(turn * 20, turn * 20 + 60):
                    name = b"%05d" % number
                    payload = draw.randbytes(5_000 if draw.random() < 0.1 else 60)
                    txn.put(space, name, checked(name, payload))
                txn.delete_range(space, b"", b"%05d" % (turn * 10))
    engine.close()


# --- damage --------------------------------------------------------------------------------------------------------


def flip(data_file: Path, found: bytes) -> None:
    """Flip one bit in every copy of ``found`` that the file holds."""
    content = bytearray(data_file.read_bytes())
    place = content.find(found)
    assert place >= 0
    while place >= 0:
        content[place + len(found) - 1] ^= 0x10
        place = content.find(found, place + 1)
    data_file.write_bytes(content)


def turn(data_file: Path, found: bytes, into: bytes) -> None:
    """Exchange bytes wherever the file holds them, under a process that has it mapped: as a page that comes back wrong
    from the disk. Both have the same length."""
    content = data_file.read_bytes()
    place = content.find(found)
    assert place >= 0
    with data_file.open("r+b", buffering=0) as file:
        while place >= 0:
            file.seek(place)
            file.write(into)
            place = content.find(found, place + 1)


def garbage_page(data: bytearray, draw: random.Random) -> None:
    page = draw.randrange(2, len(data) // PAGE)
    data[page * PAGE : (page + 1) * PAGE] = draw.randbytes(PAGE)


def garbage_after_a_true_header(data: bytearray, draw: random.Random) -> None:
    page = draw.randrange(2, len(data) // PAGE)
    data[page * PAGE + 16 : (page + 1) * PAGE] = draw.randbytes(PAGE - 16)


def garbage_bytes(data: bytearray, draw: random.Random) -> None:
    start, length = draw.randrange(len(data) - 64), draw.randint(1, 64)
    data[start : start + length] = draw.randbytes(length)


def zeroed_page(data: bytearray, draw: random.Random) -> None:
    page = draw.randrange(len(data) // PAGE)
    data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)


def swapped_pages(data: bytearray, draw: random.Random) -> None:
    left, right = (page * PAGE for page in draw.sample(range(2, len(data) // PAGE), 2))
    data[left : left + PAGE], data[right : right + PAGE] = data[right : right + PAGE], data[left : left + PAGE]


def another_page_under_its_number(data: bytearray, draw: random.Random) -> None:
    left, right = (page * PAGE for page in draw.sample(range(2, len(data) // PAGE), 2))
    data[left + 8 : left + PAGE] = data[right + 8 : right + PAGE]


def flipped_bit_in_a_header(data: bytearray, draw: random.Random) -> None:
    data[draw.randrange(len(data) // PAGE) * PAGE + draw.randrange(16)] ^= 1 << draw.randrange(8)


def flipped_bit_in_a_meta_page(data: bytearray, draw: random.Random) -> None:
    data[draw.randrange(2) * PAGE + draw.randrange(16 + 136)] ^= 1 << draw.randrange(8)


def flipped_bit_in_a_pointer(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(2, len(data) // PAGE) * PAGE
    data[start + 16 + draw.randrange(40)] ^= 1 << draw.randrange(8)


def flipped_bit_in_an_item(data: bytearray, draw: random.Random) -> None:
    """Flip a bit in an item's sizes and flags, or in the number of the page that it leads to."""
    start = draw.randrange(2, len(data) // PAGE) * PAGE
    count = max(1, (int.from_bytes(data[start + 12 : start + 14], "little") - 16) // 2)
    pointer = start + 16 + 2 * draw.randrange(count)
    item = int.from_bytes(data[pointer : pointer + 2], "little")
    place = start + item + draw.randrange(8)
    data[min(place, len(data) - 1)] ^= 1 << draw.randrange(8)


def turned_bit_in_a_key(data: bytearray, draw: random.Random) -> None:
    """Turn a bit in the key of an item on a leaf. The item may then stand out of its order."""
    counts = {
        start: (int.from_bytes(data[start + 12 : start + 14], "little") - 16) // 2
        for start in range(2 * PAGE, len(data), PAGE)
        if data[start + 10] == 2
    }
    start = draw.choice([start for start, count in counts.items() if count > 0])
    pointer = start + 16 + 2 * draw.randrange(counts[start])
    item = start + int.from_bytes(data[pointer : pointer + 2], "little")
    length = int.from_bytes(data[item + 6 : item + 8], "little")
    # A page that is free by now may hold anything.
    data[min(item + 8 + draw.randrange(max(1, length)), len(data) - 1)] ^= 1 << draw.randrange(8)


def truncated(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    garbage_page,
    garbage_after_a_true_header,
    garbage_bytes,
    zeroed_page,
    swapped_pages,
    another_page_under_its_number,
    flipped_bit_in_a_header,
    flipped_bit_in_a_meta_page,
    flipped_bit_in_a_pointer,
    flipped_bit_in_an_item,
    turned_bit_in_a_key,
    truncated,
)


# --- use -----------------------------------------------------------------------------------------------------------


class Contents:
    """The contents of an undamaged directory."""

    def __init__(self, engine: LmdbEngine) -> None:
        self.rows = read_rows(engine)
        self.items = {space: read_items(engine, space) for space in RAW_SPACES}


def store_of(engine: LmdbEngine) -> VersionStore:
    """Return a store as a node begins with it: all is verified first."""
    store = VersionStore(engine)
    for each in engine.disordered:
        store.distrust(Damage.of_disorder(each))
    walk, is_last = VerifyingPass(engine), False
    with suppress(DataLoss):
        while not is_last:
            piece = walk.step(512, 1 << 20)
            is_last = piece.is_last
            for damage in piece.damage:
                if not damage.is_of_one_key:
                    store.distrust(damage)
    return store


def read_rows(engine: LmdbEngine) -> dict[bytes, bytes]:
    store, rows, start = store_of(engine), dict[bytes, bytes](), START
    while True:
        chunk = store.scan_chunk(start, END, NOW, max_rows=200)
        rows |= zip(chunk.keys, chunk.payloads, strict=True)
        if chunk.resume is None:
            return rows
        start = chunk.resume


def read_items(engine: LmdbEngine, space: Space) -> dict[bytes, bytes]:
    with engine.read() as txn:
        page = txn.page(space, b"", b"\xff" * 20, max_items=100_000, max_bytes=1 << 40)
    for key, value in zip(page.keys, page.values, strict=True):
        if checked(key, value[:-4]) != value:
            raise DataLoss("an item", repr(key))
    return dict(zip(page.keys, page.values, strict=True))


def use(engine: LmdbEngine, contents: Contents) -> str:
    """Read and write everything. Says whether all was right or some was lost; raises if something was wrong."""
    lost = False
    reads = [(contents.rows, partial(read_rows, engine))]
    reads += [(contents.items[space], partial(read_items, engine, space)) for space in RAW_SPACES]
    for expected, read in reads:
        try:
            if read() != expected:
                raise AssertionError(f"wrong items: {read}")
        except DataLoss:
            lost = True
    store = store_of(engine)
    for key in list(contents.rows)[::7]:
        try:
            version = store.get(LogicalKey(key), NOW)
        except DataLoss:
            continue
        # If a scan finds damage, the cause may be a key that has turned into another: it is missed under its own.
        if (version is None and not lost) or (version is not None and version.payload != contents.rows[key]):
            raise AssertionError(f"wrong row {key!r}")
    write(engine)
    return "lost" if lost else "right"


def write(engine: LmdbEngine) -> None:
    for _ in range(3):
        with engine.write() as txn:
            for space in RAW_SPACES:
                txn.delete_range(space, b"", b"\xff", max_items=40)
            txn.delete_range(Space.DATA, b"", b"\xff", max_items=200)
            txn.put_many(Space.DATA, [(b"t%06d" % number * 9, bytes(100 * (number % 60))) for number in range(150)])


def probe(whole: Path, contents: Contents, seed: int) -> str:
    draw = random.Random(seed)
    damage = DAMAGES[seed % len(DAMAGES)]
    path = whole.parent / "damaged"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    data = bytearray((whole / "engine" / "data.mdb").read_bytes())
    damage(data, draw)
    (path / "engine" / "data.mdb").write_bytes(data)
    sys.stdout.write(f"{seed} {damage.__name__} ")
    sys.stdout.flush()
    try:
        engine = open_lmdb(path)
    except DataDirectoryError as error:
        return f"refused {error.problem.partition('data.mdb: ')[2]}"
    outcome = use(engine, contents)
    engine.close()
    # New writes stand on sound pages.
    open_lmdb(path).close()
    return outcome


def main() -> None:
    whole, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    engine = open_lmdb(whole)
    contents = Contents(engine)
    engine.close()
    for seed in range(first, last):
        sys.stdout.write(probe(whole, contents, seed) + "\n")


if __name__ == "__main__":
    main()
