"""Every request to a gateway has a precise answer, and the gateway stores exactly the writes that it acknowledged.

Calls to everything that the OpenAPI document lists, with odd parts; requests with damaged bytes; and between them calls
whose answers a dictionary knows. ``make fuzz-http`` goes on for ten minutes, with a new seed that it tells.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cortado import Client
from cortado.store.gateway.application import all_operations
from cortado.store.gateway.openapi import document
from support.gateway_process import GatewayProcess, gateway_process
from support.gateways import SERVED
from support.http_fuzz.calls import Requests, Row
from support.http_fuzz.model import Model
from support.http_fuzz.wire import Answer, Wire, check_answer, route_of
from support.memory import MIB, anonymous_bytes
from support.server_process import ServerProcess, running_server

pytestmark = pytest.mark.process

SECONDS: Final = int(os.environ.get("FUZZ_SECONDS", "0"))
CALLS: Final = 1_500
MEMORY_MAX: Final = 300 * MIB
ITEM: Final = """{"type": "record", "name": "Item", "fields": [{"name": "id", "type": "string"},
    {"name": "left", "type": "long", "default": 0}, {"name": "name", "type": "string", "default": ""}]}"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("node") / "data") as server:
        yield server


@pytest.fixture
def gateway(node: ServerProcess, tmp_path: Path) -> Iterator[GatewayProcess]:
    with gateway_process(node.endpoint, tmp_path) as running:
        yield running


def make_tables(endpoint: str) -> None:
    """Those that are not there: a call may have dropped one."""
    with Client(endpoint) as client:
        for database in ("modelled", "scratch"):
            if database not in client.databases():
                client.create_database(database)
            client.schemas.register(f"{database}.items", ITEM)
            if not client.tables(database):
                client.create_table(f"{database}.items", key=["id"])


@pytest.mark.timeout(600 + 2 * SECONDS)
def test_every_call_has_a_precise_answer_and_what_was_acknowledged_is_there(
    node: ServerProcess, gateway: GatewayProcess
) -> None:
    seed = random.SystemRandom().randrange(1 << 32) if SECONDS else 13
    chosen, until_s = random.Random(seed), time.monotonic() + SECONDS
    make_tables(node.endpoint)
    wire = Wire(gateway.host, gateway.port)
    told = document(all_operations())["paths"]
    rows = [Row(method.upper(), path, each) for path, methods in told.items() for method, each in methods.items()]
    requests, model = Requests(rows, chosen), Model(wire, chosen)
    statuses: Counter[str] = Counter()
    shown = ""
    before = ""
    try:
        while statuses.total() < CALLS or time.monotonic() < until_s:
            if statuses.total() % 500 == 499:
                make_tables(node.endpoint)
            kind = chosen.choices(("odd", "damaged", "modelled"), (6, 2, 2))[0]
            before, shown = shown, f"seed {seed}, call {statuses.total()}, {kind}: "
            if kind == "modelled":
                model.step()
                statuses[kind] += 1
                continue
            if kind == "damaged":
                data = requests.damaged()
                shown += repr(data[:1_500])
                is_head = data.removeprefix(b"\r\n").startswith(b"HEAD ")
                check_bytes(answer := wire.exchange(data, is_head=is_head, half=True))
            else:
                sent = requests.made()
                shown += f"{sent.method} {sent.target[:300]} {sent.headers} {sent.body[:600]!r}"
                answer = wire.call(sent)
                if answer.status:
                    check_answer(answer, sent.target, route_of(SERVED, sent.method, sent.target), sent.method)
            statuses[f"{kind} {answer.status}"] += 1
        for root in model.stored:
            model.check_all(root)
    except Exception as error:
        raise AssertionError(f"{shown[:3_000]}: {error!r}\nbehind {before[:1_000]}") from error
    log = gateway.log.read_text()
    assert "Traceback" not in log and " ERROR " not in log, log[-3_000:]
    assert "Traceback" not in node.log, node.log[-3_000:]
    assert anonymous_bytes(gateway.process.pid) < MEMORY_MAX
    assert statuses["odd 200"] > statuses.total() // 10 and statuses["damaged 200"], statuses
    mebibytes = anonymous_bytes(gateway.process.pid) // MIB
    sys.stdout.write(f"seed {seed}: {statuses.total()} calls, {mebibytes} MiB, {statuses}\n")


def check_bytes(answer: Answer) -> None:
    """Bytes that may be no request: an answer, or none."""
    if answer.status >= 500:
        assert answer.status in (501, 503, 504, 505), answer
    if answer.status >= 400 and answer.body and answer.media_type != "text/html":
        told = answer.json()
        assert "reason" in told or "error_code" in told, answer
