"""A peer that speaks the peers' protocol with a node: with any certificate, and with any frames."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from cortado.errors import CortadoError
from cortado.store.peers.connecting import Target, connected
from cortado.store.peers.connection import Connection
from cortado.store.peers.credentials import Certificates, TlsFiles, contexts_of
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.interface import PeerLimits

ANSWER_S = 20.0


def unchecked(files: TlsFiles) -> Certificates:
    """Return certificates as a wrong or hostile node might load them: the files are not checked."""
    loaded = Certificates.__new__(Certificates)
    material = SimpleNamespace(contexts=contexts_of(files))
    loaded.current = lambda: material  # type: ignore[method-assign, assignment, return-value]
    return cast(Certificates, loaded)


def takes_anything(connection: Connection) -> None:
    """Read all frames."""
    connection.expect(**{each.name: 8 << 20 for each in Kind})


def how_it_ended(address: str, node_id: str, *frames: Frame, files: TlsFiles | None = None) -> tuple[str, list[Frame]]:
    """Send frames to a node in another process. Returns the error that it ended the connection with, and the frames
    before it."""
    certificates = None if files is None else unchecked(files)
    answered: list[Frame] = []

    async def talk() -> str:
        target = Target(address, certificates, PeerLimits(), node_id)
        try:
            async with asyncio.timeout(ANSWER_S), connected(target) as connection:
                takes_anything(connection)
                for frame in frames:
                    await connection.write(*frame)
                while (answer := await connection.read()) is not None:
                    answered.append(answer)
        except CortadoError as error:
            return error.message()
        return ""

    return asyncio.run(talk()), answered
