"""Shared by the commands of one shell: a client, and the names that completion found a moment ago.

A command borrows the client and gives it back, so that the next one finds a connection and need not make one. It is
kept only if the cluster has answered. After a broken connection, a timeout or Ctrl-C its state is unknown: the next
command connects anew, with the certificates as they are by then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Final

import click

from cortado.errors import Conflict, DidNotHappen

if TYPE_CHECKING:
    from cortado.store.client import Client

NAMES_S: Final = 10.0
"""How long names are offered without asking again, if no command was run meanwhile."""


class Shared:
    """At most one idle client, and names. Of one thread."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._idle: tuple[Hashable, Client] | None = None
        self._names: dict[Hashable, tuple[float, list[str]]] = {}

    @contextmanager
    def lent(self, reach: Hashable, opened: Callable[[], Client], timeout_s: float) -> Iterator[Client]:
        """Lend the idle client, if it reaches the same servers in the same way; else a new one."""
        client = self._taken(reach) or opened()
        try:
            yield client.with_timeout(timeout_s)
        except (DidNotHappen, Conflict, click.Abort):
            self._give_back(reach, client)
            raise
        except KeyboardInterrupt:
            # It may have come amid anything, such as gRPC's start of a thread: a close waits for that thread's end.
            Thread(target=_closed_if_it_can_be, args=(client,), daemon=True).start()
            raise
        except BaseException:
            client.close()
            raise
        self._give_back(reach, client)

    def _give_back(self, reach: Hashable, client: Client) -> None:
        self.close()
        self._idle = reach, client

    def _taken(self, reach: Hashable) -> Client | None:
        if self._idle is None or self._idle[0] != reach:
            return None
        _, client = self._idle
        self._idle = None
        return client

    def names(self, key: Hashable, ask: Callable[[], list[str]]) -> list[str]:
        """Return the names that ``ask`` returned a moment ago, or returns now. An empty answer counts, too: it may have
        taken long."""
        now_s = self._monotonic_s()
        known = self._names.get(key)
        if known is None or now_s - known[0] > NAMES_S:
            known = self._names[key] = (now_s, ask())
        return known[1]

    def forget_names(self) -> None:
        """Forget names before a command is run, which may change them."""
        self._names.clear()

    def close(self) -> None:
        """Close the idle client."""
        if self._idle is not None:
            _, client = self._idle
            self._idle = None
            client.close()


def _closed_if_it_can_be(client: Client) -> None:
    with suppress(Exception):
        client.close()
