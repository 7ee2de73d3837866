"""One page of LMDB's, at its address in the map, and one item on it.

:mod:`cortado.store.engine.page_nodes` tells the layout, and the rules of a page; here one page at a time is looked at,
as a scan comes to it. A page's own numbers are held against facts known without it: that it lies in the file, its own
number, that its items fill it without a gap. So a pointer that has changed leads nowhere, or to a whole page of the
same kind, which its keys' bounds give away (:mod:`cortado.store.mvcc.kernel.tree`).

A *tree* is five numbers: the map's address, bytes a page, the last page that may be followed, the root, the depth.
"""

from __future__ import annotations

from typing import Any, Final

from cortado.store.engine.page_nodes import HEADER_BYTES, KEY_BYTES_MAX, NODE_BIG_DATA, PageKind
from cortado.store.mvcc.kernel.machine import compiled, in_place, load2, load4, load8

BASE: Final = 0
PAGE_BYTES: Final = 1
LAST_PAGE: Final = 2
ROOT: Final = 3
DEPTH: Final = 4

BRANCH: Final = int(PageKind.BRANCH)
LEAF: Final = int(PageKind.LEAF)
_OVERFLOW: Final = int(PageKind.OVERFLOW)
_HEADER_BYTES: Final = HEADER_BYTES
_KEY_BYTES_MAX: Final = KEY_BYTES_MAX
_BIG: Final = NODE_BIG_DATA
_FIRST_PAGE: Final = 2
_NODE_BYTES: Final = 8
_NUMBER_BYTES: Final = 8

DAMAGED: Final = -1


@compiled
def items_on(tree: Any, number: Any, kind: Any) -> Any:
    """Return how many items the page has, if it is one of that kind and in order; DAMAGED otherwise."""
    size = tree[PAGE_BYTES]
    if number < _FIRST_PAGE or number > tree[LAST_PAGE]:
        return DAMAGED
    page = tree[BASE] + number * size
    lower, upper = load2(page + 12), load2(page + 14)
    if load8(page) != number or load2(page + 10) != kind:
        return DAMAGED
    if lower <= _HEADER_BYTES or lower & 1 or lower > upper or upper > size:
        return DAMAGED
    count = (lower - _HEADER_BYTES) >> 1
    filled = 0
    for index in range(count):
        node = load2(page + _HEADER_BYTES + 2 * index)
        if node & 1 or node < upper or node > size - _NODE_BYTES:
            return DAMAGED
        key_bytes = load2(page + node + 6)
        taken = _NODE_BYTES + key_bytes
        if key_bytes > _KEY_BYTES_MAX:
            return DAMAGED
        if kind == LEAF:
            flags = load2(page + node + 4)
            if flags > _BIG or key_bytes == 0:
                return DAMAGED
            taken += _NUMBER_BYTES if flags else load4(page + node)
        taken += taken & 1
        if node + taken > size:
            return DAMAGED
        filled += taken
    return count if filled == size - upper else DAMAGED


@in_place
def key_on(tree: Any, page: Any, index: Any) -> Any:
    """Return address and bytes of a key; both DAMAGED if it does not lie on the page."""
    node = load2(page + _HEADER_BYTES + 2 * index)
    if node > tree[PAGE_BYTES] - _NODE_BYTES:
        return DAMAGED, DAMAGED
    key_bytes = load2(page + node + 6)
    if node + _NODE_BYTES + key_bytes > tree[PAGE_BYTES]:
        return DAMAGED, DAMAGED
    return page + node + _NODE_BYTES, key_bytes


@compiled
def child_on(tree: Any, page: Any, index: Any) -> Any:
    """Return the number of the page below; items_on() says whether it is a page."""
    node = load2(page + _HEADER_BYTES + 2 * index)
    if node > tree[PAGE_BYTES] - _NODE_BYTES:
        return DAMAGED
    return load4(page + node) | (load2(page + node + 4) << 32)


@in_place
def item_on(tree: Any, page: Any, index: Any) -> Any:
    """Return address and bytes of a leaf's key, address and bytes of its value; all DAMAGED if any is not there."""
    nothing = (DAMAGED, DAMAGED, DAMAGED, DAMAGED)
    size = tree[PAGE_BYTES]
    key, key_bytes = key_on(tree, page, index)
    if key < 0 or key_bytes > _KEY_BYTES_MAX:
        return nothing
    data = key + key_bytes
    data_bytes = load4(key - _NODE_BYTES)
    if load2(key - 4) == 0:
        if data + data_bytes > page + size:
            return nothing
        return key, key_bytes, data, data_bytes
    if data + _NUMBER_BYTES > page + size:
        return nothing
    number = load4(data) | (load4(data + 4) << 32)
    if number < _FIRST_PAGE or number > tree[LAST_PAGE]:
        return nothing
    first = tree[BASE] + number * size
    pages = load4(first + 12)
    needed = (_HEADER_BYTES - 1 + data_bytes) // size + 1
    if load8(first) != number or load2(first + 10) != _OVERFLOW:
        return nothing
    if pages < needed or number + pages - 1 > tree[LAST_PAGE]:
        return nothing
    return key, key_bytes, first + _HEADER_BYTES, data_bytes
