"""``cortado shell``: the command line's commands, one after the other, over one connection."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from cortado import errors
from cortado.proto.v1 import tables_pb2
from cortado.store.cli import failures
from cortado.store.cli.app import run
from cortado.store.cli.line_editor import candidates
from cortado.store.cli.session import ALONE, Given, Outer, Session
from cortado.store.cli.shared import NAMES_S, Shared
from cortado.store.cli.shell import LINE_BYTES_MAX, Lines, converse, words_of
from cortado.store.client import Client
from support.fake_server import FakeServer, header


def databases(*names: str) -> tables_pb2.ListDatabasesResponse:
    return tables_pb2.ListDatabasesResponse(header=header(), databases=names)


def serving() -> FakeServer:
    fake = FakeServer()
    fake.handlers["Tables.ListDatabases"] = lambda *_: databases("flights", "shop")
    fake.handlers["Tables.DatabaseSizes"] = lambda *_: tables_pb2.DatabaseSizesResponse(header=header())
    return fake


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving().running() as running:
        yield running


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """Return the clients that were made."""
    made: list[Client] = []

    class Counted(Client):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            made.append(self)

    monkeypatch.setattr("cortado.store.client.Client", Counted)
    return made


class Batch:
    """Runs lines through standard input. ``out`` and ``err`` are its output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, content: str | bytes, *options: str) -> int:
        given = content if isinstance(content, bytes) else content.encode()
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        code = run(["shell", *options])
        self.out, self.err = self._capsys.readouterr()
        return code


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Batch:
    return Batch(monkeypatch, capsys)


# --- lines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("   ", []),
        ("  # db list", []),
        ("kv put n a#b '#'", ["kv", "put", "n", "a#b", "#"]),
        ("cortado db list", ["db", "list"]),
        ("help", ["--help"]),
        ("help kv get", ["kv", "get", "--help"]),
        ("""put d.t '{"a": "b | c > d; e & f"}'""", ["put", "d.t", '{"a": "b | c > d; e & f"}']),
        ('scan d.t --filter "a > \\"x\\""', ["scan", "d.t", "--filter", 'a > "x"']),
        (r"kv get n a\|b", ["kv", "get", "n", "a|b"]),
        ("kv get n $HOME *", ["kv", "get", "n", "$HOME", "*"]),
    ],
)
def test_a_line_is_cut_as_a_shell_cuts_it(line: str, words: list[str]) -> None:
    assert words_of(line) == words


@pytest.mark.parametrize("line", ["get d.t k | jq", "get d.t k>out", "put d.t <in", "server &", "db list; db list"])
def test_what_another_shell_would_do_is_refused_and_no_part_of_a_key(line: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="must have no pipe, redirection or job"):
        words_of(line)


@pytest.mark.parametrize("line", ["get 'd.t", 'get "d.t', "get d.t \\"])
def test_a_quotation_ends_on_its_line(line: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="cannot be cut into words"):
        words_of(line)


# --- a batch -----------------------------------------------------------------------------------------------------


def test_the_commands_of_a_batch_share_one_client(server: FakeServer, batch: Batch, opened: list[Client]) -> None:
    assert batch("db list\n\ndb list --timeout 3\nnow", "-e", server.endpoint) == failures.OK
    assert batch.out.count("flights") == 2
    assert len(opened) == 1
    with pytest.raises(errors.CortadoError):
        opened[0].databases()  # The shell has closed it.


def test_another_endpoint_is_reached_by_a_client_of_its_own(
    server: FakeServer, batch: Batch, opened: list[Client]
) -> None:
    with serving().running() as other:
        lines = f"db list\ndb list -e {other.endpoint}\n-e {other.endpoint} db list\n"
        assert batch(lines, "-e", server.endpoint) == failures.OK
    assert [len(each.calls("Tables.ListDatabases")) for each in (server, other)] == [1, 2]
    assert len(opened) == 2


def test_a_batch_ends_at_the_first_failure_with_its_exit_code(server: FakeServer, batch: Batch) -> None:
    assert batch("db list\n# so\nfrobnicate\ndb list\n", "-e", server.endpoint) == failures.USAGE
    assert len(server.calls("Tables.ListDatabases")) == 1
    told, where = batch.err.splitlines()
    assert told.startswith("error: there is no command 'frobnicate'")
    assert where == "line 3 ended with exit code 2"


def test_a_batch_that_keeps_going_ends_with_the_first_failures_code(server: FakeServer, batch: Batch) -> None:
    lines = "frobnicate\ndb list\nkv get n k -e 127.0.0.1:1 --timeout 1\nexit\nfrobnicate\n"
    assert batch(lines, "--keep-going", "-e", server.endpoint) == failures.USAGE
    assert len(server.calls("Tables.ListDatabases")) == 1
    assert [each for each in batch.err.splitlines() if each.startswith("line")] == [
        "line 1 ended with exit code 2",
        "line 3 ended with exit code 6",
    ]


def test_the_shells_options_hold_for_lines_without_their_own(server: FakeServer, batch: Batch) -> None:
    assert batch("db list\ndb list -o table\nget d.t > x\n", "-o", "json", "-e", server.endpoint) == failures.USAGE
    first, second, *table = batch.out.splitlines()
    assert [json.loads(each)["database"] for each in (first, second)] == ["flights", "shop"]
    assert any(line.startswith("flights") for line in table)
    assert json.loads(batch.err.splitlines()[0])["error"]["reason"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("line", ["server", "gateway", "dev up --nodes 1", "shell"])
def test_what_runs_by_itself_is_refused_by_name(line: str, batch: Batch) -> None:
    assert batch(line) == failures.USAGE
    name = line.partition(" --")[0]
    assert batch.err.startswith(f"error: command: must be run outside of a shell: cortado {name} (got {name})\n")


def test_no_command_takes_the_lines_behind_it(batch: Batch, server: FakeServer) -> None:
    assert batch("namespace drop n\ny\n", "-e", server.endpoint) == failures.USAGE
    assert "--yes: must be given, since there is no terminal to ask on" in batch.err
    assert batch('put d.t\n{"a": 1}\n', "-e", server.endpoint) == failures.USAGE
    assert "holds nothing" in batch.err


def test_a_line_without_an_end_is_bounded(batch: Batch) -> None:
    assert batch(b"# " + b"x" * LINE_BYTES_MAX) == failures.USAGE
    assert batch.err == "error: standard input: line 1 is longer than 16.0 MiB\n"


def test_bytes_that_are_no_text_are_refused_as_an_argument_is(batch: Batch, server: FakeServer) -> None:
    assert batch(b"db create \xff\n", "-e", server.endpoint) == failures.USAGE
    assert batch.err.startswith("error: NAME: must have only letters, digits, '_' and '-'")


def test_a_closed_standard_input_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert run(["shell"]) == failures.USAGE
    assert "standard input: is closed" in capsys.readouterr().err


# --- the prompt --------------------------------------------------------------------------------------------------


class Typed:
    """Gives the typed lines, one after the other; an error is raised, and a function called for its line."""

    def __init__(self, *typed: Any) -> None:
        self._typed = list(typed)
        self.prompts: list[str] = []

    def read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self._typed:
            raise EOFError
        found = self._typed.pop(0)
        if isinstance(found, BaseException):
            raise found
        return str(found() if callable(found) else found)


def test_the_prompt_goes_on_behind_a_failure_and_shows_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    editor = Typed("frobnicate", "", "get 'x", "--version")
    assert converse(Lines(run, Outer(shared=Shared(float)), as_json=False), editor, Session()) == failures.OK
    assert editor.prompts == ["cortado> ", "cortado [2]> ", "cortado> ", "cortado [2]> ", "cortado> "]
    assert capsys.readouterr().err.count("error: ") == 2


def test_ctrl_c_ends_what_runs_and_what_is_typed_and_not_the_shell() -> None:
    ran: list[list[str]] = []

    def interrupted(words: Sequence[str], _: Outer) -> int:
        ran.append([*words])
        return failures.INTERRUPTED

    editor = Typed(KeyboardInterrupt(), "watch kv n", "watch kv n", "exit", "never")
    assert converse(Lines(interrupted, Outer(), as_json=False), editor, Session()) == failures.OK
    assert ran == [["watch", "kv", "n"]] * 2
    assert editor.prompts[-1] == "cortado [130]> "


def test_exit_takes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    editor = Typed("exit 3", "exit", "never")
    converse(Lines(run, Outer(), as_json=False), editor, Session())
    assert editor.prompts == ["cortado> ", "cortado [2]> "]
    assert capsys.readouterr().err == "error: exit: takes nothing (got 3)\n"


def test_a_shell_whose_reader_is_gone_ends() -> None:
    editor = Typed("db list", "never")
    assert converse(Lines(lambda *_: failures.BROKEN_PIPE, Outer(), as_json=False), editor, Session()) == 141


def test_behind_a_lost_connection_the_next_command_connects_again(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = Shared(float)

    def stopped() -> str:
        server.stop()
        return "db list"

    with serving().running() as other:
        outer = Outer(Given(endpoint=f"{server.endpoint},{other.endpoint}", timeout=20.0), shared)
        editor = Typed("db list", stopped, "db list")
        assert converse(Lines(run, outer, as_json=False), editor, Session()) == failures.OK
    shared.close()
    assert editor.prompts == ["cortado> "] * 4, capsys.readouterr().err


# --- shared behaviour --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        (None, True),
        (errors.NotFound("key", "k"), True),
        (errors.InvalidArgument("key", "must be short"), True),
        (click.Abort(), True),
        (errors.Unavailable("gone"), False),
        (errors.OutcomeUnknown("gone"), False),
        (errors.Internal("broken"), False),
        (KeyboardInterrupt(), False),
        (BrokenPipeError(), False),
    ],
)
def test_a_client_is_kept_where_the_cluster_has_answered(
    error: BaseException | None, is_kept: bool, opened: list[Client]
) -> None:
    shared = Shared(float)
    session = Session(endpoint="127.0.0.1:1", shared=shared)
    for _ in range(2):
        try:
            with session.client():
                if error is not None:
                    raise error
        except BaseException as raised:
            assert raised is error
    assert len(opened) == (1 if is_kept else 2)
    shared.close()


def test_closing_what_ctrl_c_tore_holds_nobody_up(opened: list[Client], monkeypatch: pytest.MonkeyPatch) -> None:
    closing, may_close = threading.Event(), threading.Event()

    def close(_: Client) -> None:
        closing.set()
        may_close.wait(60)
        raise RuntimeError("cannot join thread before it is started")

    session = Session(endpoint="127.0.0.1:1", shared=Shared(float))
    with monkeypatch.context() as patched:
        patched.setattr(Client, "close", close)
        with pytest.raises(KeyboardInterrupt), session.client():
            raise KeyboardInterrupt
        assert closing.wait(60)
        may_close.set()
    opened[0].close()


def test_a_command_that_opens_two_clients_leaves_one(opened: list[Client]) -> None:
    shared = Shared(float)
    session = Session(endpoint="127.0.0.1:1", shared=shared)
    with session.client(), session.client(read_from="any"):
        pass
    with session.client():
        pass
    assert len(opened) == 2
    shared.close()


# --- completion --------------------------------------------------------------------------------------------------


def completed(line: str, outer: Outer = ALONE) -> list[str]:
    return candidates(line, line.rpartition(" ")[2], outer)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("db li", ["list "]),
        ("cortado db li", ["list "]),
        ("help db li", ["list "]),
        ("ex", ["export ", "exit "]),
        ("he", ["health ", "help "]),
        ("db list --out", ["--output "]),
        ("db list --output j", ["json "]),
        ("db list --output=j", ["--output=json "]),
        ("db list 'j", []),
        ("db 'x y", []),
        ("db list \\", []),
        ("frobnicate x", []),
    ],
)
def test_commands_and_options_are_completed(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b.avsc").write_text("")
    (tmp_path / "ab").mkdir()
    monkeypatch.chdir(tmp_path)
    assert completed("schema register s a") == ["'a b.avsc' ", "ab/"]
    assert completed("db list --tls-ca=ab") == ["--tls-ca=ab/"]


def test_names_are_asked_for_once_while_a_line_is_typed(server: FakeServer, opened: list[Client]) -> None:
    now_s = [0.0]
    shared = Shared(lambda: now_s[0])
    outer = Outer(Given(endpoint=server.endpoint), shared)
    assert completed("db drop ", outer) == ["flights ", "shop "]
    assert completed("db drop fl", outer) == ["flights "]
    assert len(server.calls("Tables.ListDatabases")) == 1
    now_s[0] = NAMES_S + 1
    completed("db drop fl", outer)
    assert len(server.calls("Tables.ListDatabases")) == 2
    Lines(run, outer, as_json=False).run("--version")
    completed("db drop fl", outer)
    assert len(server.calls("Tables.ListDatabases")) == 3
    assert len(opened) == 1
    shared.close()


def test_names_are_those_of_the_cluster_that_the_line_names(server: FakeServer) -> None:
    nobody = Outer(Given(endpoint="127.0.0.1:1"), Shared(float))
    assert completed("db drop ", nobody) == []
    assert completed(f"db drop -e {server.endpoint} fl", nobody) == ["flights "]
    assert completed(f"-e {server.endpoint} db drop fl", nobody) == ["flights "]


def test_a_server_that_is_not_there_is_asked_once(opened: list[Client]) -> None:
    nobody = Outer(Given(endpoint="127.0.0.1:1"), Shared(float))
    for _ in range(3):
        assert completed("db drop ", nobody) == []
    assert len(opened) == 1
