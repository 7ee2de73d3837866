"""One process at a time speaks for a node: another one with the same data directory runs on a copy of it.

A copy has the same node id, storage id and certificate, and its votes and acknowledgements contradict the original's.
So each process draws a number at its start, and says it with its age in each Hello. A peer knows when the process that
speaks for the node certainly ran last, by the echoes in its messages, and compares::

    ran          ────x────x────x                     the one that speaks for n2
    a restart                        ├──► Hello      began after the last known moment: takes its place
    a copy                   ├──────────► Hello      both ran at that time: the younger one is refused

- *A restart* is younger than the silence of the one before it. It takes its place, and the one before is refused for
  good: a process that was frozen, and wakes up, has been replaced.
- *Two that ran at the same time* are an original and a copy. The one that began earlier is the original: it was there
  when the copy was made. The younger is refused for good, also if it spoke for the node here until then.

The arrival of a message proves nothing: it may have lain in a buffer while this process stood still, and its sender
may have been replaced since. An echo of our own clock says after which moment the message was sent.

This knowledge is in the memory of each peer, and no entry of the log: a vote must be given before there is a leader. So
peers that cannot reach the original may hear a copy until they can (``docs/adr/0059-one-process-for-a-node.md``).

A process that was refused stands aside by itself if no member hears it: one that starts later knows nothing of the
original, and would hear the copy.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from cortado.errors import PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import Hello, JoinRequest

TOLERANCE_MS: Final = 1_000.0
"""Clocks of two hosts may measure an age so differently."""
_REFUSED_MAX: Final = 16


@dataclass(slots=True)
class _Known:
    """The process that speaks for a node, since when it has run and when it certainly ran last, both on our clock; and
    those that never will again."""

    process: int
    began_ms: float
    lived_ms: float = -math.inf
    refused: deque[int] = field(default_factory=lambda: deque(maxlen=_REFUSED_MAX))


class OpenLink(Protocol):
    """When something was last heard on an open stream, and when its sender certainly ran, both on our clock."""

    heard_ms: float
    lived_ms: float


class Processes:
    """The processes, as one peer knows them. ``open_link`` finds a node's open stream; None without one."""

    def __init__(
        self,
        *,
        own: int,
        monotonic_ms: Callable[[], float],
        open_link: Callable[[str], OpenLink | None],
        is_heard: Callable[[], bool],
        alive_ms: float,
    ) -> None:
        """``own`` is the number of this process, drawn at its start and not 0. ``is_heard`` says whether a stream to a
        member is open. A stream that was heard within ``alive_ms`` is not given up for another process."""
        self.own = own
        self._monotonic_ms = monotonic_ms
        self._began_ms = monotonic_ms()
        self._open_link = open_link
        self._is_heard = is_heard
        self._alive_ms = alive_ms
        self._refusal: PeerRefused | None = None
        self._known: dict[str, _Known] = {}

    def refused(self, refusal: PeerRefused) -> None:
        """Note that a member has refused this process for good."""
        self._refusal = refusal

    def check_own(self) -> None:
        """Raise PeerRefused if a member has refused this process and none hears it: until it ends, none is to."""
        if self._refusal is not None and not self._is_heard():
            raise self._refusal

    def tell(self, message: Hello | JoinRequest) -> None:
        """Write this process into what introduces its node. Raises as :meth:`check_own` does."""
        self.check_own()
        message.process = self.own
        message.process_age_ms = max(int(self._monotonic_ms() - self._began_ms), 0)

    def check(self, message: Hello | JoinRequest) -> None:
        """Check that the sender may speak for its node. Raises PeerRefused if another process does, Unavailable if that
        may end in a moment, and as :meth:`check_own` does."""
        self.check_own()
        known = self._known.get(message.node_id)
        if known is None or message.process in (0, known.process):
            return
        if message.process in known.refused:
            raise refusal_of(message.node_id)
        link, now_ms = self._open_link(message.node_id), self._monotonic_ms()
        if link is not None:
            known.lived_ms = max(known.lived_ms, link.lived_ms)
        if message.process_age_ms <= now_ms - known.lived_ms + TOLERANCE_MS:
            silent_ms = math.inf if link is None else now_ms - link.heard_ms
            if silent_ms < self._alive_ms:
                problem = f"another process speaks for node {message.node_id}, and was heard {silent_ms:.0f} ms ago"
                raise Unavailable(problem, retry_delay_ms=int(self._alive_ms))
        elif message.process_age_ms <= now_ms - known.began_ms:
            known.refused.append(message.process)
            raise refusal_of(message.node_id)

    def adopt(self, hello: Hello) -> None:
        """Note that the sender, which was checked, speaks for its node from now on."""
        if not hello.process:
            return
        now_ms = self._monotonic_ms()
        known = self._known.get(hello.node_id)
        if known is not None and known.process == hello.process:
            return
        refused = deque[int](maxlen=_REFUSED_MAX) if known is None else known.refused
        if known is not None:
            refused.append(known.process)
        self._known[hello.node_id] = _Known(hello.process, now_ms - hello.process_age_ms, refused=refused)

    def lost(self, node_id: str, process: int, lived_ms: float) -> None:
        """Note the end of a stream, by which ``process`` certainly ran at ``lived_ms``."""
        known = self._known.get(node_id)
        if known is not None and known.process == process:
            known.lived_ms = max(known.lived_ms, lived_ms)

    def takes_over(self, hello: Hello) -> bool:
        """Return whether another process than the sender speaks for its node until now."""
        known = self._known.get(hello.node_id)
        return known is not None and hello.process not in (0, known.process)

    def forget(self, node_id: str) -> None:
        """Forget a node that is no member any more."""
        self._known.pop(node_id, None)


def refusal_of(node_id: str) -> PeerRefused:
    """Return the refusal of a process that does not speak for its node."""
    problem = f"another process speaks for node {node_id}, with the same data directory"
    advice = "the refused one runs on a copy of it, or was replaced while it was silent: stop it for good"
    return PeerRefused(f"{problem}: {advice}", node_id)
