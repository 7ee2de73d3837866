"""Clients for tasks, and for Spark's planning: kept between tasks if one Python process does one after the other.

::

    Spark's daemon ─ forks ─► worker: task, task, task ... until it was idle for a minute; then it is killed
                                       └─ open_client() ── the first one connects, the others find it connected

A small load is three such processes (schema, plan, rows), and a client that is new has to connect in each. So a process
that Spark uses again keeps its clients between tasks; in all others, the driver's Python for one, a client is closed at
the end of its block. Tables are described anew for each block: a name may mean another table than in the last one.

After each task Spark has the worker collect its garbage, and that is to look at every object there is: with Spark's own
modules, pandas and ours 90,000, for some 20 ms. The objects that are there after the first task stay for good, and are
frozen (:func:`gc.freeze`): the collector need not look at it again.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from cortado.store.client import Client, Tls
from cortado.store.client.authorization import TokenSource
from cortado.store.client.connection import ReadFrom
from pyspark_cortado.options import Connection, ReadOptions

KEPT_MAX: Final = 8
"""Clients that no block uses. If a cluster's members are read in turn, there is one for each of them."""
_REUSED: Final = "SPARK_REUSE_WORKER"
"""Is in the environment of processes that Spark uses again."""

_Kind: TypeAlias = tuple[str, float, Tls | None, TokenSource | None, tuple[int, ...], ReadFrom]


@contextmanager
def open_client(
    connection: Connection, *, endpoint: str | None = None, read_from: ReadFrom = "leader"
) -> Iterator[Client]:
    """Yield a client for one task, or one thing to plan; by default of the connection's own endpoint.

    Raises InvalidArgument for an endpoint that is no ``host:port``, and for files that hold no certificates."""
    tls, token = connection.tls, connection.token
    kind = (endpoint or connection.endpoint, connection.timeout_s, tls, token, _times(tls), read_from)
    if _REUSED not in os.environ:
        with _new(kind) as client:
            yield client
        return
    with _KEPT.lent(kind) as client:
        yield client.without_cache()


def open_reader(options: ReadOptions, endpoint: str) -> AbstractContextManager[Client]:
    """Return a client that reads the past: at the leader, or at all members in turn. A read that one of those cannot
    answer, in the middle of a scan too, goes to the leader."""
    read_from: ReadFrom = "any" if options.reads_anywhere else "leader"
    return open_client(options.connection, endpoint=endpoint, read_from=read_from)


def turns_of(client: Client, options: ReadOptions) -> list[str]:
    """Return the endpoints of one task after the other: the given ones for all, or all members, each of them first in
    turn."""
    if not options.reads_anywhere:
        return [options.connection.endpoint]
    members = [each.address for each in client.admin.members.list().members if each.joined]
    return [",".join((*members[first:], *members[:first])) for first in range(len(members))]


def new_client(connection: Connection) -> Client:
    """Return a client that the caller closes. Raises as :func:`open_client` does."""
    return Client(connection.endpoint, timeout_s=connection.timeout_s, tls=connection.tls, token=connection.token)


def _new(kind: _Kind) -> Client:
    endpoint, timeout_s, tls, token, _, read_from = kind
    return Client(endpoint, timeout_s=timeout_s, tls=tls, token=token, read_from=read_from)


def _times(tls: Tls | None) -> tuple[int, ...]:
    """Return the times at which its files were written: a client with renewed ones is another client."""
    paths = () if tls is None else (tls.ca, tls.cert, tls.key)
    files = [Path(path) for path in paths if path is not None]
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())


class _Kept:
    """The clients of this process. One thread of Spark's runs its tasks; readers inside of one may overlap."""

    def __init__(self) -> None:
        self._idle: OrderedDict[_Kind, Client] = OrderedDict()
        self._is_frozen = False

    @contextmanager
    def lent(self, kind: _Kind) -> Iterator[Client]:
        """Lend a client that no other block has. It is kept afterwards, unless its block was left early."""
        client = self._idle.pop(kind, None) or _new(kind)
        try:
            yield client
        except BaseException:
            # GeneratorExit, too: the reader may have had enough.
            client.close()
            raise
        self._keep(kind, client)

    def _keep(self, kind: _Kind, client: Client) -> None:
        beside = self._idle.pop(kind, None)
        if beside is not None:
            beside.close()
        self._idle[kind] = client
        while len(self._idle) > KEPT_MAX:
            self._idle.popitem(last=False)[1].close()
        if not self._is_frozen:
            self._is_frozen = True
            gc.collect()
            gc.freeze()

    def close(self) -> None:
        """All of them, at the end of a process that Spark does not kill."""
        while self._idle:
            self._idle.popitem()[1].close()


_KEPT: Final = _Kept()
atexit.register(_KEPT.close)
