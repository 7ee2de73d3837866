"""The client needs no grpcio, which is the server's."""

from __future__ import annotations

import subprocess
import sys

from support.script_server import ScriptServer, serving

SCRIPT = """
import sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].startswith("grpc"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Refuses())

import asyncio
from cortado import AsyncClient, Client

with Client(sys.argv[1]) as client:
    client.kv("n").put(b"k", b"v")
    print(client.kv("n").get(b"k"))

async def over_asyncio():
    async with AsyncClient(sys.argv[1]) as client:
        await client.kv("n").put(b"k", b"v")
        print(await client.kv("n").get(b"k"))

asyncio.run(over_asyncio())
"""


def test_both_faces_work_without_it() -> None:
    with ScriptServer(serving()) as server:
        ended = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.endpoint], capture_output=True, text=True, timeout=60, check=False
        )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("None\nNone\n", "", 0)
