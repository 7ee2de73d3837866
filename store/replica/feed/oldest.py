"""The oldest changes of those that a pass comes by, as many as fit into a bounded memory, and whole commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.mvcc.versions import suffix_of, timestamp_of
from cortado.store.replica.feed.order import place_of


@dataclass(frozen=True, slots=True)
class Window:
    """The engine keys of all changes above where the pass began, up to and including ``until``, in their order."""

    keys: list[bytes]
    until: Timestamp


class OldestChanges:
    """About ``events_max`` of the changes in ``(after, until]``, but always whole commits. If there are more, ``until``
    falls to before the first commit that is left out. Which changes are kept does not depend on the order in which they
    came."""

    def __init__(self, after: Timestamp, until: Timestamp, events_max: int) -> None:
        self.until = until
        self.events_max = events_max
        self.found: list[bytes] = []
        self._found_max = 2 * events_max
        self._too_old = suffix_of(after)
        self._newest = suffix_of(until)
        self.until_bytes = bytes(until)

    def add(self, keys: Iterable[bytes]) -> list[bytes]:
        """Engine keys that the pass came by, of any time. Returns those that are changes of this time."""
        # Inverted: the newest wanted version has the smallest suffix.
        newest, too_old = self._newest, self._too_old
        changes = [key for key in keys if newest <= key[-TIMESTAMP_BYTES:] < too_old]
        self.found += changes
        if len(self.found) > self._found_max:
            self._keep_oldest()
            # One commit may be larger than all that is wanted: it is not put in order again for each piece of it.
            self._found_max = 2 * max(self.events_max, len(self.found))
        return changes

    def complete_to(self, ts: Timestamp) -> None:
        """Nothing above ``ts`` is looked for any more."""
        self.until = min(self.until, ts)
        self.until_bytes = bytes(self.until)

    def window(self) -> Window:
        """Return the changes, once all were added."""
        if len(self.found) > self.events_max:
            self._keep_oldest()
        self.found.sort(key=place_of)
        return Window(self.found, self.until)

    def _keep_oldest(self) -> None:
        """Drop the newest commits, whole, so that at most ``events_max`` changes stay, or one commit."""
        found = self.found
        found.sort(key=place_of)
        first_suffix = found[0][-TIMESTAMP_BYTES:]
        cut_suffix = found[self.events_max][-TIMESTAMP_BYTES:]
        if cut_suffix == first_suffix:
            self.until = timestamp_of(first_suffix)
        else:
            self.until = timestamp_of(cut_suffix).previous()
        self._newest = suffix_of(self.until)
        self.until_bytes = bytes(self.until)
        self.found = [key for key in found if key[-TIMESTAMP_BYTES:] >= self._newest]
