"""What must hold in every run, asserted in every run.

An invariant is a condition that only a defect of Cortado's can break: not a crash, not a full or a damaged disk, not a
peer, not a caller. What those can break is checked too, and told as what it is (DataLoss, a refused message, a refused
call). A broken invariant raises Internal. In a turn or a transaction that stops the node, so that nothing is made from
a state that cannot be; in a read it fails the call.

They come in pairs, one where state is written and one where it is read again::

    invariant(index == self.last_index + 1, "an entry follows the last one of the log", index, self.last_index)

``what`` is a literal, and no two places share one: the simulation counts by it, and fails where an invariant was never
reached. On the good path an invariant costs a call and two comparisons, and formats nothing. So it stands where a
transaction, a turn or an entry passes, never where a row does.

Source: TigerBeetle's ``TIGER_STYLE.md``, on assertions.
"""

from __future__ import annotations

from collections.abc import Callable

from cortado.errors import Internal

on_asserted: Callable[[str, bool], None] | None = None
"""Told of each invariant that is reached, and whether it holds. The simulation sets it; nobody else does."""


def invariant(condition: bool, what: str, *found: object) -> None:
    """Raise Internal unless ``condition``: ``what`` should hold, and ``found`` are the values that say otherwise."""
    if on_asserted is not None:
        on_asserted(what, condition)
    if not condition:
        values = ", ".join(map(str, found))
        raise Internal(f"it does not hold that {what}" + (f": {values}" if values else ""))
