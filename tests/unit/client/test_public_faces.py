"""The traceback of a refused call ends in the application's line, on both faces, for every call."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado.errors import ConditionFailed, CortadoError, Internal, InvalidArgument, NotFound
from cortado.proto.v1 import kv_pb2
from cortado.store import client as package
from cortado.store.client import AsyncClient, Client
from cortado.store.client.public_faces import ENTRIES, SHOWN_BY
from support.fake_server import FakeServer, header, refuse


@pytest.fixture(autouse=True)
def _hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHOWN_BY, raising=False)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        for name in ("Get", "Put", "Scan", "ScanPage"):
            running.handlers[f"KeyValue.{name}"] = lambda request, context: refuse(context, NotFound("thing", "x"))
        running.handlers["Transactions.Commit"] = lambda request, context: refuse(context, ConditionFailed("k"))
        yield running


def functions(error: BaseException) -> list[str]:
    """Return the names of the functions in a traceback, outermost first."""
    return [entry.name for entry in traceback.extract_tb(error.__traceback__)]


def refused(call: Callable[[], Any]) -> CortadoError:
    try:
        call()
    except CortadoError as error:
        return error
    raise AssertionError("nothing was refused")


def commit(client: Client) -> None:
    with client.transaction() as txn:
        txn.kv("n").put(b"k", b"v", if_absent=True)


def iterate(client: Client) -> None:
    for _ in client.kv("n").scan():
        pass


CALLS: dict[str, Callable[[Client], Any]] = {
    "a call": lambda client: client.kv("n").get(b"k"),
    "a write": lambda client: client.kv("n").put(b"k", b"v"),
    "a bad argument": lambda client: client.kv("n").put(b"", b"v"),
    "a bad view": lambda client: client.at("yesterday"),
    "a scan": iterate,
    "a commit": commit,
    "a table": lambda client: client.table("a"),
    "another client": lambda client: Client("no port"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_traceback_of_a_refusal_ends_in_the_applications_line(server: FakeServer, name: str) -> None:
    with Client(server.endpoint) as client:
        call = CALLS[name]
        error = refused(lambda: call(client))
    assert functions(error)[:2] == ["refused", "<lambda>"]
    assert all(entry.filename == __file__ for entry in traceback.extract_tb(error.__traceback__))
    shown = "".join(traceback.format_exception(error))
    assert shown.count("Traceback") == 1, "a refusal has no cause that an application could do something about"


def test_the_traceback_ends_there_for_asyncio_too(server: FakeServer) -> None:
    async def call(client: AsyncClient) -> None:
        await client.kv("n").get(b"k")

    async def iterate(client: AsyncClient) -> None:
        async for _ in client.kv("n").scan():
            pass

    async def commit(client: AsyncClient) -> None:
        async with client.transaction() as txn:
            await txn.kv("n").put(b"k", b"v", if_absent=True)

    async def all_of_them() -> list[tuple[str, CortadoError]]:
        found: list[tuple[str, CortadoError]] = []
        async with AsyncClient(server.endpoint) as client:
            for each in (call, iterate, commit):
                try:
                    await each(client)
                except CortadoError as error:
                    found.append((each.__name__, error))
        return found

    found = asyncio.run(all_of_them())
    assert [functions(error) for _, error in found] == [["all_of_them", name] for name in ("call", "iterate", "commit")]


def test_frames_of_the_application_below_the_client_stay(server: FakeServer) -> None:
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(header=header(1_500))

    def steps(txn: Any) -> None:
        helper(txn)

    def helper(txn: Any) -> None:
        raise InvalidArgument("order", "is of another day")

    with Client(server.endpoint) as client:
        error = refused(lambda: client.run(steps))
    assert functions(error) == ["refused", "<lambda>", "steps", "helper"]


def test_causes_lose_the_clients_frames_and_nothing_else() -> None:
    class Opened:
        @staticmethod
        def fail() -> None:
            raise OSError("of the application")

    with pytest.raises(InvalidArgument) as raised:
        Client("127.0.0.1:1", token=1)  # type: ignore[arg-type]
    assert functions(raised.value) == ["test_causes_lose_the_clients_frames_and_nothing_else"]
    try:
        try:
            Opened.fail()
        except OSError:
            Client("no port")
    except InvalidArgument as error:
        assert isinstance(error.__context__, OSError)
        assert functions(error.__context__)[-1] == "fail"


def test_a_variable_shows_all_frames(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHOWN_BY, "1")
    with Client(server.endpoint) as client:
        error = refused(lambda: client.kv("n").get(b"k"))
    assert any("/store/client/" in entry.filename for entry in traceback.extract_tb(error.__traceback__))


def test_a_defect_shows_all_frames(server: FakeServer) -> None:
    server.handlers["KeyValue.Get"] = lambda request, context: refuse(context, Internal("a defect"))
    with Client(server.endpoint) as client:
        error = refused(lambda: client.kv("n").get(b"k"))
    assert any("/store/client/" in entry.filename for entry in traceback.extract_tb(error.__traceback__))


PUBLIC = [getattr(package, name) for name in package.__all__ if inspect.isclass(getattr(package, name))]
FACES = [
    each
    for each in PUBLIC
    if (f"Async{each.__name__}" in package.__all__ or each.__name__.startswith("Async"))
    and each is not package.AsyncDocumentCodec  # A table calls it for each document, and hides its frames.
]


@pytest.mark.parametrize("face", FACES, ids=lambda each: each.__name__)
def test_every_public_method_hides_the_clients_frames(face: type) -> None:
    for name, member in inspect.getmembers(face):
        if isinstance(member, property):
            member = member.fget
        if inspect.isfunction(member) and (not name.startswith("_") or name in ENTRIES):
            assert member.__code__.co_filename.endswith("public_faces.py"), name
