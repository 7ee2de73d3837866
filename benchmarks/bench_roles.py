"""The extra cost of a call in a cluster with roles, in processor time: identify the caller, check its rights.

A call is checked by the roles in memory, also right behind a commit that is not applied yet. The caller is identified
before its message is received, and its rights are checked behind that. A write is checked once more at append. The
principal has twenty grants.

    python -m benchmarks.bench_roles
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.loop_holds import running
from benchmarks.report import Measurement, show
from cortado.proto.v1 import kv_pb2
from cortado.store.auth import changes
from cortado.store.auth.caller import CALLER, checked
from cortado.store.auth.current import Credential
from cortado.store.auth.stored import Kind
from cortado.store.auth.tokens import make_token
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.server.audit import Audit
from cortado.store.server.authority import CREDENTIAL, Authority

TITLE: Final = "Roles"
METHOD: Final = "cortado.v1.KeyValue/Put"
CALLS: Final = 20_000
REPEATS: Final = 9
AIM: Final = 1e6 / 3
"""Checks a second: three microseconds each."""
GRANTS: Final = 20
WRITTEN: Final = 10_000
"""Keys of the commit that is in flight."""


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return f"KeyValue.Put by a token with {GRANTS} grants; the best of {REPEATS} runs of {CALLS:,} calls"


def run() -> list[Measurement]:
    """Measure everything; takes some ten seconds."""
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(_run(Path(directory)))


async def _run(path: Path) -> list[Measurement]:
    async with running(path) as host:
        off = await _rates(host, "roles off")
        token, root = make_token(os.urandom), make_token(os.urandom)
        new = changes.NewToken(root.token_id, root.digest)
        await host.meta.write(changes.enable("root", Kind.TOKEN, new))
        new = changes.NewToken(token.token_id, token.digest)
        await host.meta.write(changes.create("app", Kind.TOKEN, new))
        for number in range(GRANTS):
            await host.meta.write(changes.grant("app", "writer", f"namespace:n{number}"))
        CREDENTIAL.set(Credential(token.text))
        return [*off, *await _rates(host, "roles on")]


async def _rates(host: Host, name: str) -> list[Measurement]:
    authority = Authority(host, Audit(None, "node-1", time.time))
    request = kv_pb2.KvPutRequest(namespace="n7", key=b"k", value=b"v")
    replica = host.meta
    check = authority.checker(METHOD)
    await replica.reads.caught_up()
    check(request)
    caller = CALLER.get()
    assert replica.roles.committed.is_enabled == (name == "roles on")

    def both() -> None:
        authority.check_known(METHOD)
        check(request)

    call = _rate(both)
    CALLER.set(None)
    await replica.write(_many)
    assert replica.driver.pipeline.appended_bytes, "nothing is applied before the loop goes on"
    behind = _rate(both)
    evaluate = checked(lambda _reader, _ts: Evaluation(Mutations(), None), caller, lambda: replica.roles.appended)
    read_ts = replica.read_ts()
    reader = replica.reader(read_ts)
    appended = _rate(lambda: evaluate(reader, read_ts))
    CALLER.set(None)
    return [
        Measurement(f"{name}: a call", call, "checks", aim=AIM),
        Measurement(f"{name}: a call right behind a commit", behind, "checks", aim=AIM),
        Measurement(f"{name}: where a write is appended", appended, "checks", aim=AIM),
    ]


def _many(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    mutations = Mutations()
    for number in range(WRITTEN):
        mutations.put(kv_key("n7", b"%d" % number), b"v" * 100)
    return Evaluation(mutations, None)


def _rate(call: Callable[[], object]) -> float:
    best_s = min(timeit.repeat(call, timer=time.thread_time, number=CALLS, repeat=REPEATS))
    return CALLS / best_s


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
