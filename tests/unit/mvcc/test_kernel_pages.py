"""The pages that the scan kernel refuses, one fault at a time: a copy of a data file that is whole but for it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from cortado.store.engine.interface import Tree
from support.engines import open_lmdb
from support.kernels import row_kernel
from support.scans_alike import History, tree_of

PAGE = 4_096


@pytest.fixture
def copied(tmp_path: Path) -> tuple[NDArray[np.uint8], Tree, int]:
    """Return the file's bytes, its tree of versions there, and the last commit's number."""
    row_kernel()
    engine = open_lmdb(tmp_path / "data", map_bytes=64 << 20)
    history = History(engine, Random(4))
    for _ in range(12):
        history.commit(40, 1_000)
    assert not isinstance(engine.mapped, str)
    _, page_size, _, root, depth = tree_of(engine.mapped)
    engine.close()
    held = np.fromfile(tmp_path / "data/engine/data.mdb", np.uint8)
    return held, (held.ctypes.data, page_size, len(held) // page_size - 1, root, depth), history.commits


def test_a_page_that_says_it_is_another_one_is_refused(copied: tuple[NDArray[np.uint8], Tree, int]) -> None:
    from support.damaged_scans import pages_below, scan

    held, tree, number = copied
    assert scan(row_kernel(), tree, number, reverse=False), "whole, it is read"
    for page in pages_below(held.tobytes(), tree[3], tree[4]):
        held[page + 1] ^= 1
        assert scan(row_kernel(), tree, number, reverse=False) is None, page // PAGE
        held[page + 1] ^= 1
    assert scan(row_kernel(), tree, number, reverse=False)


@pytest.mark.parametrize("reverse", [False, True])
def test_another_whole_leaf_in_the_place_of_the_right_one_is_refused(
    copied: tuple[NDArray[np.uint8], Tree, int], reverse: bool
) -> None:
    """Though its keys ascend, and every slice of one row ends before the next leaf could tell."""
    from support.damaged_scans import BRANCH, pages_below, scan

    held, tree, number = copied
    content = held.tobytes()
    live = pages_below(content, tree[3], tree[4])
    for branch in [page for page, kind in live.items() if kind == BRANCH]:
        items = (int.from_bytes(content[branch + 12 : branch + 14], "little") - 16) // 2
        nodes = [int.from_bytes(content[branch + 16 + 2 * i :][:2], "little") + branch for i in range(items)]
        for node, other in zip(nodes, nodes[2:], strict=False):
            held[node : node + 4] = np.frombuffer(content[other : other + 4], np.uint8)
            assert scan(row_kernel(), tree, number, reverse=reverse, rows=1) is None
            held[node : node + 4] = np.frombuffer(content[node : node + 4], np.uint8)
    assert scan(row_kernel(), tree, number, reverse=reverse, rows=1)
