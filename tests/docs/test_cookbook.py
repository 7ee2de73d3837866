"""The programs of docs/cookbook.md in processes that are killed by SIGKILL while they work."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cortado import Client
from support.pages import page
from support.server_process import running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

KILLS = 3

# Two leaders at once would give one number twice: under snapshot isolation their commits do not conflict.
LEADING = """
import sys

owner = sys.argv[1].encode()

def next_number(txn):
    number = sum(1 for _ in txn.kv("numbers").scan())
    txn.kv("numbers").put(b"%06d " % number + owner, b"")
    return True

while not lead(Lock(b"jobs", owner, timedelta(seconds=2)), next_number, 0.05):
    pass
"""
ORDERING = """
import sys
from itertools import count

for number in count(int(sys.argv[1])):
    client.run(lambda txn: order(txn, f"c{number % 7}", number, 1.0))
"""
# A line is received once it is in the file.
RELAYING = """
import os, sys

received = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    relay(lambda id, text: os.write(received, f"{id}\\n".encode()))
"""


def programs(endpoint: str) -> str:
    """Return the definitions of the page, without the statements that create or show something."""
    kept: list[ast.stmt] = []
    for block in page("docs/cookbook.md").blocks:
        if block.language == "python":
            for statement in ast.parse(block.text).body:
                is_client = isinstance(statement, ast.Assign) and "Client(" in ast.unparse(statement)
                is_import = isinstance(statement, (ast.Import, ast.ImportFrom)) and "polars" not in ast.unparse(
                    statement
                )
                if is_client or is_import or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    kept.append(statement)
    return ast.unparse(ast.Module(kept, [])).replace("127.0.0.1:7621", endpoint)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    with running_server(tmp_path / "data") as server:
        yield server.endpoint


@pytest.fixture
def client(endpoint: str) -> Iterator[Client]:
    with Client(endpoint) as client:
        yield client


@contextmanager
def working(endpoint: str, work: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the page's programs and ``work`` in a process of its own, and kill it at the end."""
    process = subprocess.Popen([sys.executable, "-c", programs(endpoint) + work, *arguments])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_one_process_leads_at_a_time_though_leaders_are_killed(client: Client, endpoint: str) -> None:
    def owners() -> list[str]:
        return [pair.key.decode().split()[1] for pair in client.kv("numbers").scan()]

    with ExitStack() as stack:
        processes = {name: stack.enter_context(working(endpoint, LEADING, name)) for name in ("a", "b", "c")}
        killed: set[str] = set()
        for _ in range(2):
            wait_until(lambda: owners()[-1:] not in ([], *([name] for name in killed)), "one that lives leads")
            killed.add(leader := owners()[-1])
            processes[leader].kill()
        wait_until(lambda: owners()[-1] not in killed, "the last one leads")
    numbers = [int(pair.key.split()[0]) for pair in client.kv("numbers").scan()]
    assert numbers == list(range(len(numbers)))


def test_each_message_of_an_outbox_is_sent_in_order_though_relays_are_killed(
    client: Client, endpoint: str, tmp_path: Path
) -> None:
    client.create_database("shop")
    for name, key, types in (
        ("shop.orders", ["customer", "number"], {"customer": "string", "number": "long", "total": "double"}),
        ("shop.outbox", ["id"], {"id": "string", "text": "string"}),
    ):
        fields = [{"name": field, "type": type} for field, type in types.items()]
        client.schemas.register(name, {"type": "record", "name": "Row", "fields": fields})
        client.create_table(name, key=key)
    file = tmp_path / "received"
    file.touch()

    def received() -> list[str]:
        return file.read_text().split()

    for kill in range(KILLS):
        before = len(received())
        with working(endpoint, ORDERING, f"{kill}000000"), working(endpoint, RELAYING, str(file)):
            wait_until(lambda before=before: len(received()) > before + 20, "messages are sent")  # type: ignore[misc]
    with working(endpoint, RELAYING, str(file)):
        wait_until(lambda: client.table("shop.outbox").count() == 0, "all messages are sent")
    orders = sorted(client.table("shop.orders").scan(), key=lambda each: each.ts)
    assert list(dict.fromkeys(received())) == [f"{each.value['number']}-{each.value['customer']}" for each in orders]
