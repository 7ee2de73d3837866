"""How a run ends: one line, and an exit code that means something."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import cortado
from cortado import errors
from cortado.store.cli import failures
from cortado.store.cli.app import run, wants_json
from cortado.store.cli.input import json_input
from cortado.store.cli.render import Renderer, cell, count
from cortado.store.settings.sizes import size_text

pytestmark = pytest.mark.slow


def leaves(kind: type[errors.CortadoError]) -> list[type[errors.CortadoError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in leaves(child))]


EXPECTED = {
    errors.NotFound: 3,
    errors.AlreadyExists: 4,
    errors.ConditionFailed: 4,
    errors.UniqueViolation: 4,
    errors.WriteConflict: 4,
    errors.IncompatibleSchema: 5,
    errors.InvalidArgument: 2,
    errors.KeyTooLong: 2,
    errors.InvalidFilter: 2,
    errors.SnapshotTooOld: 2,
    errors.Unsupported: 2,
    errors.Unavailable: 6,
    errors.NotLeader: 6,
    errors.ResourceExhausted: 6,
    errors.DeadlineExceeded: 6,
    errors.OutcomeUnknown: 7,
    errors.DataLoss: 8,
    errors.DataDirectoryError: 8,
    errors.ClockOutOfBounds: 8,
    errors.Cancelled: 130,
    errors.Internal: 1,
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_each_kind_of_error_has_its_exit_code(kind: type[errors.CortadoError]) -> None:
    assert failures.exit_code_of(kind.__new__(kind)) == EXPECTED[kind]


def test_every_kind_of_error_has_an_exit_code_that_is_not_success() -> None:
    assert all(failures.exit_code_of(kind.__new__(kind)) > 0 for kind in leaves(errors.CortadoError))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["frobnicate"], "frobnicate"),
        (["get"], "TABLE"),
        (["get", "flights.flights"], "KEY"),
        (["status", "--fast"], "--fast"),
        (["status", "-o", "xml"], "xml"),
        (["status", "--timeout", "soon"], "soon"),
        (["status", "--timeout", "0"], "--timeout: must be above 0"),
        (["status", "--timeout", "nan"], "--timeout"),
        (["member", "promote", "n2", "--wait", "--wait-timeout", "inf"], "--wait-timeout"),
        (["member", "promote", "n2", "--wait", "--wait-timeout", "-1"], "--wait-timeout"),
        (["backup", "monday/"], "there is no command 'backup monday/'; backup has create, verify, show"),
        (["status", "-e", "nowhere"], "--endpoint: must look like host:port"),
        (["scan", "flights", "--limit", "-1"], "limit"),
        (["schema", "get"], "SUBJECT"),
        (["schema", "register", "s", "/no/such/file"], "/no/such/file"),
        (["kv", "put", "n", "k"], "VALUE"),
        (["kv", "put", "n", "k", "\\q"], "VALUE"),
        (["put", "d.t", "{}", "--file", "x"], "--file"),
        (["put", "d.t", "{"], "DOCUMENT"),
        (
            ["put", "d.t", "{}", "--if-absent", "--if-etag", "e"],
            "--if-etag: must not be given together",
        ),
        (
            ["kv", "put", "n", "--if-absent", "--if-present"],
            "--if-present: must not be given together",
        ),
        (["schema", "compatibility", "s", "--default"], "SUBJECT: must not be given together with --default"),
        (["doctor", "--dev", "/nope"], "--dev: holds no local cluster"),
        (["dev", "status", "--dir", "/nope"], "--dir: holds no local cluster"),
        (["update", "d.t", "1"], "--set: must name at least one field, unless --ttl is given"),
        (["table", "create", "d.t", "--key", "a", "--index", "x"], "--index"),
        (["debug", "key", "decode", "xyz"], "HEX"),
        (["server", "--map-size", "big"], "--map-size"),
        (["server", "--listen", "0.0.0.0:1"], "or --insecure"),
        (["server", "--limit.writes", "1"], "--limit.writes-max"),
        (["server", "--limit.command-bytes-max", "99999999999"], "--limit.command-bytes-max"),
        (["server", "--raft.entry-bytes-max", "5"], "--raft.entry-bytes-max"),
        (["server", "--data-dir", "\udcff"], "--data-dir"),
        (["dev", "up", "--dir", "\udcff", "--nodes", "1"], "--dir"),
        (["member", "add", "\udcff", "127.0.0.1:9", "-e", "127.0.0.1:1"], "NODE_ID"),
        (["watch", "kv", "n", "--after", "noon"], "--after"),
        (["watch", "kv", "n", "--until", "2026-01-01T00:00:00"], "--until"),
        (["top", "--interval", "0.1", "--once"], "--interval"),
        (["debug", "key", "decode", ""], "HEX"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_wrong_usage_is_one_line_that_names_it(
    arguments: list[str], named: str, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["-o", "json"] if as_json and "xml" not in arguments else []
    assert run([*arguments, *more]) == failures.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert named in shown.err
    if more:
        assert json.loads(shown.err)["error"]["message"]


def test_no_arguments_show_the_help_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == failures.USAGE
    shown = capsys.readouterr()
    assert "Usage: cortado" in shown.out + shown.err
    assert "error:" not in shown.out + shown.err


def test_the_version_is_shown_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == failures.OK
    assert capsys.readouterr().out == f"cortado {cortado.__version__}\n"


def test_nobody_to_talk_to_is_unavailable(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-e", "127.0.0.1:1", "--timeout", "60", "status", "-o", "json"]) == failures.UNAVAILABLE
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["reason"] == "UNAVAILABLE"
    assert "127.0.0.1:1" in error["message"]


def test_options_after_the_command_win_over_those_before_and_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(endpoints: Any, *_: Any, **__: Any) -> None:
        raise errors.Unavailable(f"asked {endpoints}")

    monkeypatch.setenv("CORTADO_ENDPOINTS", "127.0.0.1:3")
    monkeypatch.setattr("cortado.store.client.Client", refuse)
    for arguments, port in (
        (["status"], 3),
        (["-e", "127.0.0.1:2", "status"], 2),
        (["-e", "127.0.0.1:2", "status", "-e", "127.0.0.1:1"], 1),
    ):
        run(arguments)
        assert f"127.0.0.1:{port}" in capsys.readouterr().err


def test_a_defect_is_internal_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("cortado.store.client.Client", crash)
    monkeypatch.delenv("CORTADO_DEBUG", raising=False)
    assert run(["status"]) == failures.INTERNAL
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "ZeroDivisionError: oops" in shown


def test_a_reader_who_goes_away_ends_the_run_quietly() -> None:
    code = (
        "import sys\nfrom cortado.store.cli import app\nfrom cortado.store.cli.render import Renderer\n"
        "def endless(*_, **__):\n    while True: Renderer().json({'a': 'x' * 1000})\n"
        "app.execute = endless\nsys.exit(app.run([]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == failures.BROKEN_PIPE


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-", "2>/dev/full"])
def test_where_nobody_can_be_told_the_exit_code_still_tells(closed: str) -> None:
    script = (
        f"{sys.executable} -m cortado.store.cli --version {closed} && {sys.executable} -m cortado.store.cli no {closed}"
    )
    # Two starts of an interpreter: the time is there to end a hang, however slow the machine is.
    ended = subprocess.run(["sh", "-c", script], capture_output=True, timeout=120)
    assert ended.returncode == failures.USAGE
    assert b"Traceback" not in ended.stderr


def test_ctrl_c_ends_the_run_quietly() -> None:
    code = (
        "import sys, threading\nfrom cortado.store.cli import app\n"
        "def hang(*_, **__):\n    print('hanging', flush=True)\n    threading.Event().wait(30)\n"
        "app.execute = hang\nsys.exit(app.run([]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert shown == b""
    assert process.returncode == failures.INTERRUPTED


def test_json_is_recognised_where_nothing_else_parses() -> None:
    assert wants_json(["x", "-o", "json"])
    assert wants_json(["-o", "json", "x"])
    assert wants_json(["--output=json"])
    assert not wants_json(["-o", "table"])
    assert not wants_json(["--", "-o", "json"])


# --- input and output ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "only", "lines"),
    [
        ('{"a": 1}', '{"a": 1}', b'{"a": 1}'),
        ('\n{"a": 1}\n\n', '{"a": 1}', b'\n{"a": 1}\n'),
        ('{"a": 1}\n\n{"a": 2}\n', None, b'{"a": 1}\n\n{"a": 2}\n'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1\n}', b'{   "a": 1 } '),
        ('{\n "a": 1\n}\n{\r\n "a": 2\n}{"a": 3}', None, b'{  "a": 1 }\n{   "a": 2 }\n{"a": 3}'),
        ('{"a": }\n{"a": 1}\n', None, b'{"a": }\n{"a": 1}\n'),
        ('{"a": 1}\n{"a": }\n', None, b'{"a": 1}\n{"a": }\n'),
        ('{\n"a": }', '{\n"a": }', b'{ "a": }'),
    ],
)
def test_json_is_one_value_or_a_value_a_line(text: str, only: str | None, lines: bytes, tmp_path: Path) -> None:
    path = tmp_path / "documents"
    path.write_text(text, newline="")
    with ExitStack() as stack:
        found = json_input(str(path), stack)
        assert (found.only, found.lines.read()) == (only, lines)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_nothing_to_read_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "documents"
    path.write_bytes(content)
    with ExitStack() as stack, pytest.raises(errors.InvalidArgument, match="holds nothing"):
        json_input(str(path), stack)


def test_a_large_input_is_read_line_by_line_and_not_at_once(tmp_path: Path) -> None:
    path = tmp_path / "documents"
    path.write_bytes(b'{"a": 1}\n' * 100_000)
    with ExitStack() as stack:
        found = json_input(str(path), stack)
        assert sum(1 for _ in found.lines) == 100_000


def test_tables_cut_nothing_and_obey_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 3_000
    Renderer().table(("name", "value"), [(long, "[bold]plain[/bold]"), ("\x1b[31mred\n", None)])
    Renderer().record({"name": long, "list": [1, "a"]})
    shown = capsys.readouterr().out
    assert shown.count(long) == 2
    assert "[bold]plain[/bold]" in shown
    assert "\x1b" not in shown
    assert "\\x1b[31mred\\n" in shown
    assert '[1, "a"]' in shown
    assert "null" in shown


def test_values_numbers_and_sizes_for_people() -> None:
    assert [cell(value) for value in (None, True, 1.5, "a", [1])] == ["null", "true", "1.5", "a", "[1]"]
    assert [count(1, "row"), count(2000, "row"), count(2, "index entry", "index entries")] == [
        "1 row",
        "2,000 rows",
        "2 index entries",
    ]
    sizes = [0, 1023, 1024, 102_348, 102_349, 1023 << 10, (1 << 20) - 1, 1 << 40, 5 << 50]
    assert [size_text(each) for each in sizes] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "99.9 KiB",
        "100 KiB",
        "1023 KiB",
        "1.0 MiB",
        "1.0 TiB",
        "5120 TiB",
    ]


@pytest.mark.parametrize(
    "command", [("backup", "show"), ("import", "shop.orders"), ("export", "shop.orders"), ("cert", "ca", "--dir")]
)
def test_a_path_that_is_too_long_is_refused_and_no_defect(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "a" * 5_000 + ".csv"]) == failures.USAGE
    assert "error: file: cannot be used: File name too long (got aaa" in capsys.readouterr().err
