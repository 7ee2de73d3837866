"""A place in one of LMDB's trees: found by a search, moved from item to item either way.

::

    place   [0, 1, 2] page's address, index, items     the root
            [3, 4, 5]                                  the page below it that index 0 names
            ...                                        down to a leaf

Each page is checked when the place comes to it (:mod:`cortado.store.mvcc.kernel.pages`), and its keys against the
bounds that the pages above it set::

    branch     | - | d | h |          the first key of a branch page has no meaning
    child 1        ^ keys in [d, h)   so another whole leaf in its place is noticed

A search also looks at the item before the one that it finds. If that is not below the sought key, keys are out of their
order and sent the search the wrong way.
"""

from __future__ import annotations

from typing import Any, Final

from cortado.store.mvcc.kernel.machine import compare, compiled, in_place, number_at, set_number
from cortado.store.mvcc.kernel.pages import (
    BASE,
    BRANCH,
    DAMAGED,
    DEPTH,
    LEAF,
    PAGE_BYTES,
    ROOT,
    child_on,
    items_on,
    key_on,
)

LEVEL: Final = 3
"""Numbers in a place for each level."""

FOUND: Final = 1
END: Final = 0


@compiled
def _bound_above(tree: Any, place: Any, level: Any, ahead: Any) -> Any:
    """Return the lower bound (``ahead`` 0) or the upper one (1) of the page at ``level``: the key's address and bytes,
    which are 0 if there is no bound."""
    for above in range(level - 1, -1, -1):
        index = number_at(place, LEVEL * above + 1) + ahead
        if 0 < index < number_at(place, LEVEL * above + 2):
            return key_on(tree, number_at(place, LEVEL * above), index)
    return 0, 0


@compiled
def _is_within(tree: Any, place: Any, level: Any) -> Any:
    """Return whether the keys of the page at ``level`` lie between the bounds from above."""
    page, count = number_at(place, LEVEL * level), number_at(place, LEVEL * level + 2)
    first = 0 if level == tree[DEPTH] - 1 else 1
    low, low_bytes = _bound_above(tree, place, level, 0)
    high, high_bytes = _bound_above(tree, place, level, 1)
    if low < 0 or high < 0:
        return False
    if low > 0 and high > 0 and compare(low, low_bytes, high, high_bytes) >= 0:
        return False
    if first >= count:
        return True
    key, key_bytes = key_on(tree, page, first)
    if key < 0 or (low > 0 and compare(key, key_bytes, low, low_bytes) < 0):
        return False
    key, key_bytes = key_on(tree, page, count - 1)
    return key >= 0 and (high == 0 or compare(key, key_bytes, high, high_bytes) < 0)


@compiled
def _enter(tree: Any, place: Any, level: Any, number: Any) -> Any:
    """Move to a page, at its first item; DAMAGED if it can't be the one at this place."""
    count = items_on(tree, number, LEAF if level == tree[DEPTH] - 1 else BRANCH)
    if count == DAMAGED:
        return DAMAGED
    set_number(place, LEVEL * level, tree[BASE] + number * tree[PAGE_BYTES])
    set_number(place, LEVEL * level + 1, 0)
    set_number(place, LEVEL * level + 2, count)
    return FOUND if _is_within(tree, place, level) else DAMAGED


@compiled
def _sought(tree: Any, place: Any, level: Any, key: Any, key_bytes: Any) -> Any:
    """Return, on a leaf, the first item at or after the key, perhaps behind the last one; on a branch page, the child
    that holds the key. DAMAGED if a key does not lie on the page."""
    page, count = number_at(place, LEVEL * level), number_at(place, LEVEL * level + 2)
    is_leaf = level == tree[DEPTH] - 1
    low, high = 0 if is_leaf else 1, count
    while low < high:
        middle = (low + high) >> 1
        there, there_bytes = key_on(tree, page, middle)
        if there < 0:
            return DAMAGED
        order = compare(there, there_bytes, key, key_bytes)
        if order < 0 or (order == 0 and not is_leaf):
            low = middle + 1
        else:
            high = middle
    return low if is_leaf else low - 1


@compiled
def _turn(tree: Any, place: Any, step: Any) -> Any:
    """Move to the first item of the next leaf (``step`` 1), or the last of the one before (-1)."""
    leaf = tree[DEPTH] - 1
    level = leaf - 1
    while level >= 0:
        index = number_at(place, LEVEL * level + 1) + step
        if 0 <= index < number_at(place, LEVEL * level + 2):
            break
        level -= 1
    if level < 0:
        return END
    set_number(place, LEVEL * level + 1, number_at(place, LEVEL * level + 1) + step)
    while level < leaf:
        number = child_on(tree, number_at(place, LEVEL * level), number_at(place, LEVEL * level + 1))
        level += 1
        if _enter(tree, place, level, number) == DAMAGED:
            return DAMAGED
        if step < 0:
            set_number(place, LEVEL * level + 1, number_at(place, LEVEL * level + 2) - 1)
    return FOUND


@in_place
def move(tree: Any, place: Any, step: Any) -> Any:
    """Move to the next item (``step`` 1) or the one before (-1): FOUND, DAMAGED, or END if there is no such item. After
    END the place is as it was."""
    leaf = LEVEL * (tree[DEPTH] - 1)
    index = number_at(place, leaf + 1) + step
    if 0 <= index < number_at(place, leaf + 2):
        set_number(place, leaf + 1, index)
        return FOUND
    return _turn(tree, place, step)


@compiled
def _descend(tree: Any, place: Any, key: Any, key_bytes: Any, top: Any) -> Any:
    """Move to a leaf, from the page at the level ``top``, which was entered before."""
    for level in range(top, tree[DEPTH]):
        if level > top:
            above = LEVEL * (level - 1)
            number = child_on(tree, number_at(place, above), number_at(place, above + 1))
            if _enter(tree, place, level, number) == DAMAGED:
                return DAMAGED
        index = _sought(tree, place, level, key, key_bytes)
        if index == DAMAGED:
            return DAMAGED
        set_number(place, LEVEL * level + 1, index)
    return FOUND


@compiled
def seek(tree: Any, place: Any, key: Any, key_bytes: Any) -> Any:
    """Move to the first item at or after a key: FOUND, END if all are below it (the place is then behind the last
    item), or DAMAGED."""
    if tree[DEPTH] == 0:
        return END
    if _enter(tree, place, 0, tree[ROOT]) == DAMAGED:
        return DAMAGED
    return _seek_below(tree, place, key, key_bytes, 0)


@compiled
def _seek_below(tree: Any, place: Any, key: Any, key_bytes: Any, top: Any) -> Any:
    """Seek as :func:`seek`, for a key below the page at the level ``top``, which was entered before."""
    leaf = LEVEL * (tree[DEPTH] - 1)
    if _descend(tree, place, key, key_bytes, top) == DAMAGED:
        return DAMAGED
    # The item before, which may be on the leaf before.
    before = move(tree, place, -1)
    if before == DAMAGED:
        return DAMAGED
    if before == FOUND:
        there, there_bytes = key_on(tree, number_at(place, leaf), number_at(place, leaf + 1))
        if there < 0 or compare(there, there_bytes, key, key_bytes) >= 0:
            return DAMAGED
        found = move(tree, place, 1)
        if found == END:
            set_number(place, leaf + 1, number_at(place, leaf + 2))
            return END
        if found == DAMAGED:
            return DAMAGED
    there, there_bytes = key_on(tree, number_at(place, leaf), number_at(place, leaf + 1))
    return FOUND if there >= 0 and compare(there, there_bytes, key, key_bytes) >= 0 else DAMAGED


@compiled
def _seek_around(tree: Any, place: Any, key: Any, key_bytes: Any) -> Any:
    """Seek as :func:`seek`, from the lowest page above the leaf that has the key between two of its own: the pages
    above it are not entered again."""
    level = tree[DEPTH] - 2
    while level > 0:
        page, count = number_at(place, LEVEL * level), number_at(place, LEVEL * level + 2)
        low, low_bytes = key_on(tree, page, 1)
        high, high_bytes = key_on(tree, page, count - 1)
        if low < 0 or high < 0:
            return DAMAGED
        if compare(low, low_bytes, key, key_bytes) <= 0 and compare(high, high_bytes, key, key_bytes) > 0:
            break
        level -= 1
    return _seek_below(tree, place, key, key_bytes, max(level, 0))


@compiled
def seek_from(tree: Any, place: Any, key: Any, key_bytes: Any) -> Any:
    """Seek as :func:`seek`, for a key that is likely on the place's leaf, or near it: it enters few pages or none."""
    leaf = LEVEL * (tree[DEPTH] - 1)
    page, count = number_at(place, leaf), number_at(place, leaf + 2)
    first, first_bytes = key_on(tree, page, 0)
    last, last_bytes = key_on(tree, page, count - 1)
    if first < 0 or last < 0:
        return DAMAGED
    if compare(first, first_bytes, key, key_bytes) >= 0 or compare(last, last_bytes, key, key_bytes) < 0:
        return _seek_around(tree, place, key, key_bytes)
    index = _sought(tree, place, tree[DEPTH] - 1, key, key_bytes)
    if index <= 0 or index >= count:
        return DAMAGED
    before, before_bytes = key_on(tree, page, index - 1)
    there, there_bytes = key_on(tree, page, index)
    if before < 0 or there < 0:
        return DAMAGED
    if compare(before, before_bytes, key, key_bytes) >= 0 or compare(there, there_bytes, key, key_bytes) < 0:
        return DAMAGED
    set_number(place, leaf + 1, index)
    return FOUND
