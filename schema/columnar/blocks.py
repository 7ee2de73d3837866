"""Find the starts of the items of arrays and maps: the one part of Avro that cannot be read side by side at once.

An array is blocks of items, and an item starts where the last one ended. Four ways to find all starts, by item:

- no bytes (null): there is nothing to find, only a count to bound;
- all the same size (double, fixed, a record of them): by arithmetic;
- a number: item ``k`` starts behind the ``k``-th byte that ends a varint;
- any other type: step through the ``k``-th items of all lanes at once, and once few lanes go on, one by one in
  :mod:`cortado.schema.columnar.skip`.

Once the starts are known, the items of all rows are read side by side as one long vector of lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cortado.schema.columnar.column import Ints, offsets_of
from cortado.schema.columnar.lanes import Lanes
from cortado.schema.columnar.skip import Malformed, Skip, SkipItems, count_empty_items
from cortado.schema.limits import FREE_ITEMS_MAX

FEW_LANES = 32
"""Below this a step in Python costs less than one in numpy."""

_NONE: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class ItemShape:
    """The properties of an item by which it is found: its ``least`` bytes, its ``fixed`` size if it has one, whether it
    ``is_number``, a vectorised ``skip``, and the skips of one item and of a whole array, which has ``depth`` containers
    around it."""

    least: int
    fixed: int | None
    is_number: bool
    skip: Callable[[Lanes, Ints, Ints], Ints]
    skip_one: Skip
    skip_all: SkipItems
    depth: int

    @property
    def is_direct(self) -> bool:
        """Return whether a block's items are found without stepping through them."""
        return self.fixed is not None or self.is_number


def find_items(lanes: Lanes, shape: ItemShape, pos: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Find the items of the arrays at ``pos``: (how many in each lane, all starts lane by lane, positions after).

    ``starts`` is empty if items take no bytes.
    """
    counts = np.zeros(len(pos), np.int64)
    after = pos.copy()
    active = np.arange(len(pos))
    found: list[tuple[Ints, Ints]] = []
    first = True
    while active.size:
        if active.size < FEW_LANES and not (first and shape.is_direct):
            found.append(_finish_one_by_one(lanes, shape, active, end, counts, after))
            break
        first = False
        active, block_counts, starts = _next_block(lanes, shape, active, end, counts, after)
        found.append((np.repeat(active, block_counts) if shape.least else _NONE, starts))
    return counts, _in_lane_order(found), after


def _in_lane_order(found: list[tuple[Ints, Ints]]) -> Ints:
    pieces = [piece for piece in found if piece[1].size]
    if not pieces:
        return _NONE
    if len(pieces) == 1:
        return pieces[0][1]
    lanes_of = np.concatenate([lane for lane, _ in pieces])
    starts = np.concatenate([start for _, start in pieces])
    return starts[np.argsort(lanes_of, kind="stable")]


def _next_block(
    lanes: Lanes, shape: ItemShape, active: Ints, end: Ints, counts: Ints, after: Ints
) -> tuple[Ints, Ints, Ints]:
    """Read one block in each active lane: (the lanes that go on, their items, the items' starts)."""
    count, pos = lanes.varint(after[active], end[active])
    sized = np.flatnonzero(count < 0)
    size = _sizes(lanes, sized, pos, end[active], count) if sized.size else None
    _bound_counts(lanes, shape, count, pos, end[active], counts[active])
    on = np.flatnonzero(count)
    after[active] = pos
    if size is not None:
        size = size[on]
    active, count, pos = active[on], count[on], pos[on]
    if not active.size:
        return active, count, _NONE
    starts, stop = _run(lanes, shape, pos, end[active], count)
    if size is not None:
        # A lane that was rejected meanwhile is parked; marking it again changes nothing.
        wrong = (size >= 0) & (stop - pos != size)
        if wrong.any():
            lanes.reject(wrong, stop, end[active])
    after[active] = stop
    # Parked lanes keep their counted items, so that starts and counts agree.
    counts[active] += count
    return active, count, starts


def _sizes(lanes: Lanes, sized: Ints, pos: Ints, end: Ints, count: Ints) -> Ints:
    """Read the sizes that follow negative counts, and make those counts positive. -1 if there is no size."""
    sizes = np.full(len(pos), -1, np.int64)
    stated, stop = lanes.varint(pos[sized], end[sized])
    negated = -count[sized]
    # The lowest count has no positive twin.
    wrong = (stated < 0) | (negated < 0)
    if wrong.any():
        lanes.reject(wrong, stop, end[sized], negated)
    sizes[sized], pos[sized], count[sized] = stated, stop, negated
    return sizes


def _bound_counts(lanes: Lanes, shape: ItemShape, count: Ints, pos: Ints, end: Ints, seen: Ints) -> None:
    """Reject the lanes that claim more items than can be there."""
    room = (end - pos) // shape.least if shape.least else FREE_ITEMS_MAX - seen
    # A parked lane has no room and no items.
    wrong = count > np.maximum(room, 0)
    if wrong.any():
        lanes.reject(wrong, pos, end, count)


def _run(lanes: Lanes, shape: ItemShape, pos: Ints, end: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return the starts of ``count`` items from ``pos`` on in each lane, and the positions after the last."""
    if shape.least == 0:
        return _NONE, pos.copy()
    if shape.fixed is not None:
        offsets = offsets_of(count)
        starts = np.repeat(pos - offsets[:-1] * shape.fixed, count)
        starts += np.arange(int(offsets[-1])) * shape.fixed
        return starts, pos + count * shape.fixed
    if shape.is_number:
        return _run_of_numbers(lanes, pos, end, count)
    return _run_in_step(lanes, shape, pos, end, count)


def _run_of_numbers(lanes: Lanes, pos: Ints, end: Ints, count: Ints) -> tuple[Ints, Ints]:
    stops = lanes.terminators()
    first = np.searchsorted(stops, pos)
    after = stops[np.minimum(first + count, len(stops)) - 1] + 1
    over = after > end
    if over.any():
        lanes.reject(over, after, end, count)
    offsets = offsets_of(count)
    starts = stops[np.repeat(first - 1 - offsets[:-1], count) + np.arange(int(offsets[-1]))] + 1
    some = np.flatnonzero(count)
    starts[offsets[some]] = pos[some]
    return starts, after


def _run_in_step(lanes: Lanes, shape: ItemShape, pos: Ints, end: Ints, count: Ints) -> tuple[Ints, Ints]:
    offsets = offsets_of(count)
    starts = np.empty(int(offsets[-1]), np.int64)
    after = np.empty_like(pos)
    active, slot, left = np.arange(len(pos)), offsets[:-1].astype(np.int64), count.copy()
    while active.size >= FEW_LANES:
        starts[slot] = pos
        pos = shape.skip(lanes, pos, end)
        slot += 1
        left -= 1
        done = left == 0
        if done.any():
            after[active[done]] = pos[done]
            on = np.flatnonzero(left)
            active, slot, left, pos, end = active[on], slot[on], left[on], pos[on], end[on]
    for lane, at, items, start, stop in zip(
        active, slot.tolist(), left.tolist(), pos.tolist(), end.tolist(), strict=True
    ):
        after[lane] = _step_one(lanes, shape, starts[at : at + items], start, stop)
    return starts, after


def _step_one(lanes: Lanes, shape: ItemShape, starts: Ints, pos: int, end: int) -> int:
    """Fill in the starts of one lane's items, and give the position after the last."""
    seen: list[int] = []
    try:
        for _ in range(len(starts)):
            seen.append(pos)
            pos = shape.skip_one(lanes.raw, pos, end, shape.depth + 1)
    except Malformed:
        lanes.bad[np.searchsorted(lanes.row_ends, end)] = True
        starts[:] = lanes.park
        return lanes.park
    starts[:] = seen
    return pos


def _finish_one_by_one(
    lanes: Lanes, shape: ItemShape, active: Ints, end: Ints, counts: Ints, after: Ints
) -> tuple[Ints, Ints]:
    """Walk the rest of a few lanes' arrays in Python: (the lane of each item, the items' starts)."""
    lanes_of: list[Ints] = []
    starts: list[int] = []
    for lane in active.tolist():
        before = len(starts)
        at, stop = int(after[lane]), int(end[lane])
        try:
            if shape.least:
                after[lane] = shape.skip_all(lanes.raw, at, stop, shape.depth, starts)
                counts[lane] += len(starts) - before
            else:
                after[lane], counts[lane] = count_empty_items(lanes.raw, at, stop, int(counts[lane]))
        except Malformed:
            lanes.bad[np.searchsorted(lanes.row_ends, stop)] = True
            after[lane] = lanes.park
            del starts[before:]
        lanes_of.append(np.full(len(starts) - before, lane))
    return np.concatenate(lanes_of), np.array(starts, np.int64)
