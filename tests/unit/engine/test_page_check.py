"""The walk through the data file finds damage that LMDB would crash on, names it, and takes every file that LMDB
writes."""

from __future__ import annotations

import random
import struct
from collections.abc import Collection, Iterator
from pathlib import Path

import lmdb
import pytest

from cortado.store.engine.data_file import DamagedDataFile, Meta, check_metas
from cortado.store.engine.page_check import Checked, check_pages

PAGE = 4_096
NAMES = (b"data", b"log")


class File:
    """A data file in memory, to be damaged."""

    def __init__(self, path: Path) -> None:
        self.meta: Meta = check_metas(path / "data.mdb")
        self.data = bytearray((path / "data.mdb").read_bytes())

    def check(self, pages_max: int | None = None, checked: Collection[bytes] = ()) -> Checked:
        def read(offset: int, length: int) -> bytes:
            return bytes(self.data[offset : offset + length])

        return check_pages(read, len(self.data), self.meta, NAMES, checked=checked, pages_max=pages_max)

    def refused(self, pages_max: int | None = None) -> str:
        with pytest.raises(DamagedDataFile) as error:
            self.check(pages_max)
        return str(error.value)

    def half(self, page: int, offset: int) -> int:
        return int.from_bytes(self.data[page * PAGE + offset : page * PAGE + offset + 2], "little")

    def put(self, page: int, offset: int, form: str, value: int) -> None:
        struct.pack_into(form, self.data, page * PAGE + offset, value)

    def item(self, page: int, number: int) -> int:
        """Return the item's offset in its page."""
        return self.half(page, 16 + 2 * number)

    def pages(self, flags: int) -> Iterator[int]:
        """Yield pages in use of that kind: those of the newest state, which the files here are alone."""
        return (page for page in range(2, len(self.data) // PAGE) if self.half(page, 10) == flags)

    def leaf_with(self, key: bytes) -> int:
        return next(page for page in self.pages(2) if key in self.data[page * PAGE : (page + 1) * PAGE])


def write(path: Path, *, keys: int = 2_000) -> None:
    environment = lmdb.open(str(path), max_dbs=4, map_size=1 << 28, sync=False, metasync=False)
    with environment.begin(write=True) as txn:
        data = environment.open_db(b"data", txn)
        log = environment.open_db(b"log", txn)
        for number in range(keys):
            txn.put(b"%06d" % number, bytes(60), db=data)
        for number in range(4):
            txn.put(b"big%d" % number, bytes(10_000), db=log)
    with environment.begin(write=True) as txn:
        for number in range(0, keys, 3):
            txn.delete(b"%06d" % number, db=data)
        txn.delete(b"big3", db=log)
    environment.close()


@pytest.fixture
def file(tmp_path: Path) -> File:
    write(tmp_path)
    return File(tmp_path)


@pytest.fixture
def fresh(tmp_path: Path) -> File:
    """Return a file of a single transaction, so that every page is in use."""
    tmp_path = tmp_path / "fresh"
    environment = lmdb.open(str(tmp_path), max_dbs=4, map_size=1 << 28, sync=False, metasync=False)
    with environment.begin(write=True) as txn:
        data = environment.open_db(b"data", txn)
        for number in range(2_000):
            txn.put(b"%06d" % number, b"value of %d" % number, db=data)
        log = environment.open_db(b"log", txn)
        for number in range(4):
            txn.put(b"big%d" % number, bytes(10_000), db=log)
    environment.close()
    return File(tmp_path)


def test_a_whole_file_is_taken_and_all_of_it_was_looked_at(file: File, fresh: File) -> None:
    assert file.check().complete
    # All but the meta pages, and the second and third pages of each large value.
    assert fresh.check() == Checked(fresh.meta.last_page + 1 - 2 - 4 * 2, complete=True, disordered=[])


@pytest.mark.parametrize("seed", range(12))
def test_every_file_that_lmdb_writes_is_taken(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    environment = lmdb.open(str(tmp_path), max_dbs=4, map_size=1 << 28, sync=False, metasync=False)
    databases = [environment.open_db(name) for name in NAMES]
    sizes = (0, 1, 60, 500, 2_030, 2_040, 4_079, 4_080, 4_081, 20_000)
    lengths = (8, 8) if seed % 3 else (1, 511)
    known: list[bytes] = []
    for turn in range(12):
        with environment.begin(write=True) as txn:
            for _ in range(draw.choice((1, 20, 300))):
                database = draw.choice(databases)
                if known and draw.random() < (0.2 if turn % 4 else 0.9):
                    txn.delete(known.pop(draw.randrange(len(known))), db=database)
                    continue
                key = draw.choice(known) if known and draw.random() < 0.3 else draw.randbytes(draw.randint(*lengths))
                known.append(key)
                # Twice in one transaction: a large value that is made smaller keeps its pages.
                for _ in range(draw.choice((1, 1, 2))):
                    txn.put(key, bytes(draw.choice(sizes)), db=database)
            if draw.random() < 0.1:
                txn.drop(draw.choice(databases), delete=False)
        whole = File(tmp_path)
        assert whole.check().complete
        whole.check(pages_max=10)
    environment.close()


def test_pages_at_the_end_that_were_never_written_are_no_damage(tmp_path: Path) -> None:
    environment = lmdb.open(str(tmp_path), max_dbs=4, map_size=1 << 28, sync=False, metasync=False)
    data = environment.open_db(b"data")
    for turn in range(6):
        with environment.begin(write=True) as txn:
            for number in range(200):
                txn.put(b"%03d" % number, bytes(100), db=data)
            if turn == 5:
                txn.put(b"a", bytes(1_000_000), db=data)
                txn.delete(b"a", db=data)
    environment.close()
    file = File(tmp_path)
    assert len(file.data) < (file.meta.last_page + 1) * PAGE
    assert file.check().complete


def test_a_page_in_anothers_place_is_named(fresh: File) -> None:
    left, right = list(fresh.pages(2))[3:5]
    fresh.data[left * PAGE : (left + 1) * PAGE] = fresh.data[right * PAGE : (right + 1) * PAGE]
    expected = f"page {left}, a leaf page of sub-database 'data': it is not there; in its place is what says"
    assert fresh.refused().startswith(expected)


@pytest.mark.parametrize(("flags", "shown"), [(0x12, "0x0012"), (0x01, "0x0001"), (0, "0x0000")])
def test_a_page_of_another_kind_is_named(fresh: File, flags: int, shown: str) -> None:
    page = fresh.leaf_with(b"000700")
    fresh.put(page, 10, "<H", flags)
    assert fresh.refused() == f"page {page}, a leaf page of sub-database 'data': its flags are {shown}, not 0x0002"


@pytest.mark.parametrize(("offset", "value"), [(12, 16), (12, 17), (12, 8_000), (14, 4_096), (14, 4_095), (14, 20)])
def test_a_page_without_a_possible_free_space_is_named(fresh: File, offset: int, value: int) -> None:
    page = fresh.leaf_with(b"000700")
    fresh.put(page, offset, "<H", value)
    assert f"page {page}, a leaf page of sub-database 'data': its free space" in fresh.refused()


@pytest.mark.parametrize("value", [0, 30, 4_090, 4_096, 0xFFFE])
def test_a_pointer_out_of_the_items_is_named(fresh: File, value: int) -> None:
    page = fresh.leaf_with(b"000700")
    fresh.put(page, 16 + 2 * 5, "<H", value)
    said = f"page {page}, a leaf page of sub-database 'data': item 5: its pointer leads out of the page's items"
    assert fresh.refused() == said


def test_an_item_that_overlaps_another_is_found(fresh: File) -> None:
    page = fresh.leaf_with(b"000700")
    fresh.put(page, 16 + 2 * 5, "<H", fresh.item(page, 6))
    assert f"page {page}, a leaf page of sub-database 'data': item 5: it overlaps another" in fresh.refused()


@pytest.mark.parametrize(("offset", "value"), [(0, 3), (0, 4_000), (2, 1), (4, 1), (4, 2), (6, 60), (6, 0), (6, 4_000)])
def test_an_item_of_another_size_or_kind_is_found(fresh: File, offset: int, value: int) -> None:
    page = fresh.leaf_with(b"000700")
    fresh.put(page, fresh.item(page, 5) + offset, "<H", value)
    assert fresh.refused().startswith(f"page {page}, a leaf page of sub-database 'data': item")


def test_keys_out_of_order_are_found(fresh: File) -> None:
    page = fresh.leaf_with(b"000700")
    start = fresh.item(page, 5) + 8
    fresh.data[page * PAGE + start] = ord("1")
    assert "item 6: its key is not above the one before" in fresh.refused()


def test_keys_beyond_what_the_page_above_says_are_found(fresh: File) -> None:
    page = fresh.leaf_with(b"000700")
    count = (fresh.half(page, 12) - 16) // 2
    last = fresh.item(page, count - 1) + 8
    fresh.data[page * PAGE + last] = ord("1")
    assert "its last key is not below the bound of the page above it" in fresh.refused()


@pytest.mark.parametrize(("number", "byte"), [(0, "!"), (0, "1"), (5, "!"), (5, "1"), (-1, "!"), (-1, "1")])
def test_a_stray_key_among_items_with_checksums_is_taken_and_its_page_named(
    fresh: File, number: int, byte: str
) -> None:
    page = fresh.leaf_with(b"000700")
    count = (fresh.half(page, 12) - 16) // 2
    first, last = (fresh.item(page, each) + 8 for each in (0, count - 1))
    keys = [bytes(fresh.data[page * PAGE + each : page * PAGE + each + 6]) for each in (first, last)]
    fresh.data[page * PAGE + fresh.item(page, number % count) + 8] = ord(byte)
    ((name, low, high),) = fresh.check(checked=[b"data"]).disordered
    assert name == b"data"
    assert low <= keys[0] < keys[1] < high
    fresh.refused()


def test_a_page_of_which_most_keys_stray_is_another_page_and_found(fresh: File) -> None:
    page = fresh.leaf_with(b"000700")
    for number in range(5):
        fresh.data[page * PAGE + fresh.item(page, number) + 8] = ord("1")
    with pytest.raises(DamagedDataFile, match="its key is not above the one before"):
        fresh.check(checked=[b"data"])


def test_a_page_with_two_parents_is_found(fresh: File) -> None:
    branch = next(fresh.pages(1))
    first, second = (fresh.item(branch, number) for number in (3, 4))
    child = fresh.half(branch, second)
    fresh.put(branch, first, "<H", child)
    assert fresh.refused() == f"sub-database 'data': page {child}, known from its branch pages, is in use elsewhere"


def test_a_page_that_does_not_exist_is_found(fresh: File) -> None:
    branch = next(fresh.pages(1))
    fresh.put(branch, fresh.item(branch, 3) + 4, "<H", 1)
    assert "known from its branch pages, is beyond the last one" in fresh.refused()


@pytest.mark.parametrize(("offset", "form", "value"), [(0, "<Q", 9), (10, "<H", 2), (12, "<I", 2), (12, "<I", 1 << 30)])
def test_a_large_value_without_its_pages_is_found(fresh: File, offset: int, form: str, value: int) -> None:
    page = next(fresh.pages(4))
    fresh.put(page, offset, form, value)
    assert fresh.refused().startswith(f"page {page}: no overflow page of sub-database 'log'")


def test_a_free_page_that_is_in_use_is_found(file: File) -> None:
    # Right before it, in the list of free pages, stands how many there are.
    leaf = file.meta.free.root
    used = file.meta.main.root
    start = leaf * PAGE + file.item(leaf, 0) + 8 + 8
    count = int.from_bytes(file.data[start : start + 8], "little")
    file.data[start + 8 : start + 16] = (file.meta.last_page + 1).to_bytes(8, "little")
    assert "pages go to" in file.refused()
    file.data[start + 8 * count : start + 8 * count + 8] = used.to_bytes(8, "little")
    file.data[start + 8 : start + 16] = file.meta.last_page.to_bytes(8, "little")
    assert f"page {used}, which is in use" in file.refused() or "not in order" in file.refused()


def test_a_list_of_free_pages_that_says_it_is_longer_is_found(file: File) -> None:
    leaf = file.meta.free.root
    start = leaf * PAGE + file.item(leaf, 0) + 8 + 8
    file.data[start : start + 8] = (5_000).to_bytes(8, "little")
    assert "is said to hold 5000" in file.refused()


def test_a_sub_database_under_another_name_is_found(fresh: File) -> None:
    start = fresh.data.index(b"data", fresh.meta.main.root * PAGE)
    fresh.data[start : start + 4] = b"dapa"
    assert fresh.refused() == "it has a sub-database of the unknown name b'dapa'"


@pytest.mark.parametrize(
    ("offset", "said"), [(4, "flags"), (6, "levels"), (8, "branch pages"), (16, "leaf pages"), (32, "entries")]
)
def test_a_record_that_does_not_fit_its_tree_is_found(fresh: File, offset: int, said: str) -> None:
    record = fresh.data.index(b"data", fresh.meta.main.root * PAGE) + 4
    fresh.data[record + offset] ^= 0x40
    assert said in fresh.refused()


def test_of_a_large_file_all_branches_and_in_turn_all_leaves_are_looked_at(tmp_path: Path) -> None:
    environment = lmdb.open(str(tmp_path), max_dbs=4, map_size=1 << 28, sync=False, metasync=False)
    with environment.begin(write=True) as txn:
        data = environment.open_db(b"data", txn)
        for number in range(9_000):
            txn.put(b"%06d" % number + b"x" * 480, bytes(60), db=data)
    environment.close()
    file = File(tmp_path)
    everything = file.check().pages
    share = file.check(pages_max=everything // 4)
    assert not share.complete
    assert share.pages < everything * 0.7
    branch = list(file.pages(1))[7]
    file.put(branch, 14, "<H", 20)
    assert f"page {branch}, a branch page" in file.refused(pages_max=everything // 4)


def test_a_file_that_ends_too_early_is_found_also_where_not_all_is_read(fresh: File) -> None:
    del fresh.data[-10 * PAGE :]
    assert "truncated" in fresh.refused()
    assert "truncated" in fresh.refused(pages_max=5)
