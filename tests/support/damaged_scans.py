"""A child process that scans damaged copies of a data file: ``python -m support.damaged_scans FIRST COUNT``.

It ends with 0 and prints ``read COUNT, refused N`` if no scan gave a wrong row. A pointer that was followed and led
nowhere ends it by a signal. The copies are mapped by themselves: LMDB, which trusts its file, has no part in it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random

import numpy as np

from cortado.store.engine.interface import Tree
from cortado.store.mvcc.kernel.scanning import RowKernel
from cortado.store.mvcc.slices import Slice
from cortado.store.mvcc.versions import suffix_of
from support.engines import open_lmdb
from support.scans_alike import HIGHEST, LOWEST, History, Row, at, tree_of

PAGE = 4_096
BRANCH, LEAF = 1, 2


def scan(kernel: RowKernel, tree: Tree, number: int, *, reverse: bool, rows: int = 70) -> list[Row] | None:
    start, end, found, suffix = LOWEST, HIGHEST, list[Row](), suffix_of(at(number))
    while start < end:
        chunk = kernel.read_tree(tree, Slice(start, end, suffix, suffix, reverse, rows, 1 << 16))
        if chunk is None:
            return None
        expiries = [chunk.expiries.get(key, 0) for key in chunk.keys]
        found += zip(chunk.keys, chunk.suffixes, chunk.payloads, expiries, strict=True)
        if chunk.resume is None:
            return found
        start, end = (start, chunk.resume) if reverse else (chunk.resume, end)
    return found


def pages_below(content: bytes, number: int, depth: int) -> dict[int, int]:
    """Return the place and the kind of each page of a tree. Freed ones are left out: an old copy of a page, whole, is
    nothing that can be told from the page (docs/formats/data-directory.md)."""
    page = number * PAGE
    found = {page: BRANCH if depth > 1 else LEAF}
    if depth > 1:
        for index in range((int.from_bytes(content[page + 12 : page + 14], "little") - 16) // 2):
            node = page + int.from_bytes(content[page + 16 + 2 * index :][:2], "little")
            found |= pages_below(content, int.from_bytes(content[node : node + 4], "little"), depth - 1)
    return found


def damage(content: bytearray, live: dict[int, int], draw: Random) -> None:
    """Make one random change: a bit, some bytes, a field of a page or of an item, a page that is another's."""
    pages = sorted(live)
    page = draw.choice(pages)
    items = max(1, (int.from_bytes(content[page + 12 : page + 14], "little") - 16) // 2)
    pointer = page + 16 + 2 * draw.randrange(items)
    node = page + int.from_bytes(content[pointer : pointer + 2], "little")
    kind = draw.randrange(8)
    if kind == 0:
        content[draw.randrange(2 * PAGE, len(content))] ^= 1 << draw.randrange(8)
    elif kind == 1:
        place = page + draw.randrange(PAGE - 8)
        content[place : place + 8] = draw.randbytes(8)
    elif kind == 2:
        content[page + draw.randrange(16)] ^= 1 << draw.randrange(8)
    elif kind == 3:
        content[pointer : pointer + 2] = draw.choice([draw.randbytes(2), content[page + 16 : page + 18]])
    elif kind == 4:
        content[min(node + draw.randrange(8), len(content) - 1)] ^= 1 << draw.randrange(8)
    elif kind == 5:
        other = draw.choice(pages)
        number = content[page : page + 8]
        content[page : page + PAGE] = content[other : other + PAGE]
        content[page : page + 8] = number
    elif kind == 6:
        branch = draw.choice([each for each in pages if live[each] == BRANCH])
        branch_items = (int.from_bytes(content[branch + 12 : branch + 14], "little") - 16) // 2
        pointer = branch + 16 + 2 * draw.randrange(branch_items)
        node = branch + int.from_bytes(content[pointer : pointer + 2], "little")
        target = draw.choice([draw.choice(pages) // PAGE, draw.randrange(1 << 20)])
        content[node : node + 4] = target.to_bytes(4, "little")
    else:
        # One item fewer, or more, than there are.
        content[page + 12] = (content[page + 12] + draw.choice([-2, 2])) % 256


def main(first: int, count: int) -> None:
    kernel, refused = RowKernel(), 0
    with tempfile.TemporaryDirectory() as folder:
        engine = open_lmdb(Path(folder) / "data", map_bytes=64 << 20)
        history = History(engine, Random(11))
        for _ in range(40):
            history.commit(50, 9_000)
        assert not isinstance(engine.mapped, str)
        _, page_size, _, root, depth = tree_of(engine.mapped)
        assert page_size == PAGE and depth > 2, "there are branch pages below the root"
        whole = (Path(folder) / "data/engine/data.mdb").read_bytes()
        copy = Path(folder) / "copy"
        numbers = [0, 1, 13, history.commits // 2, history.commits]
        intact = np.frombuffer(whole, np.uint8)
        tree = (intact.ctypes.data, page_size, len(whole) // page_size - 1, root, depth)
        expected = {(n, way): scan(kernel, tree, n, reverse=way) for n in numbers for way in (False, True)}
        assert all(rows is not None for rows in expected.values()), "an intact file is read"
        assert expected[history.commits, False]
        live = pages_below(whole, root, depth)
        engine.close()
        for seed in range(first, first + count):
            draw = Random(seed)
            content = bytearray(whole)
            for _ in range(draw.choice([1, 1, 2, 5])):
                damage(content, live, draw)
            copy.write_bytes(content)
            # A map of its own for each: reads go to the file, as LMDB's would.
            there = np.memmap(copy, np.uint8, mode="r")
            tree = (there.ctypes.data, page_size, len(content) // page_size - 1, root, depth)
            for (number, reverse), rows in expected.items():
                found = scan(kernel, tree, number, reverse=reverse)
                refused += found is None
                if found is not None and found != rows:
                    raise SystemExit(f"seed {seed}: wrong rows at {number}, reverse={reverse}")
            del there
    sys.stdout.write(f"read {count}, refused {refused}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
