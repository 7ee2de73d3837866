"""The command line against a real server: its output for people, and for scripts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cortado.store.cli.app import run
from cortado.store.client import Client
from support.server_process import ServerProcess, running_server

pytestmark = pytest.mark.process

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "carrier", "type": "string"},
        {"name": "flight", "type": "int"},
        {"name": "tailnum", "type": ["null", "string"], "default": None},
        {"name": "delay", "type": ["null", "double"], "default": None},
    ],
}
KEY = ("2013-01-01T10:00:00Z", "UA", "1545")
DOCUMENT = {"time_hour": KEY[0], "carrier": "UA", "flight": 1545, "tailnum": "N14228", "delay": 11.0}


class Shell:
    """Runs ``cortado`` in this process. ``out`` and ``err`` are the output of the last run."""

    def __init__(self, endpoint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.out = self.err = ""
        monkeypatch.setenv("CORTADO_ENDPOINTS", endpoint)

    def __call__(self, *arguments: str, expect: int = 0, stdin: str = "") -> str:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(arguments)
        self.out, self.err = self._capsys.readouterr()
        assert code == expect, f"{arguments} ended with {code}: {self.err}"
        return self.out

    def json(self, *arguments: str, expect: int = 0, stdin: str = "") -> list[Any]:
        self(*arguments, "-o", "json", expect=expect, stdin=stdin)
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def cortado(server: ServerProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(server.endpoint, capsys, monkeypatch)


@pytest.fixture
def flights(cortado: Shell, database: str) -> str:
    name = f"{database}.flights"
    cortado("schema", "register", name, "-", stdin=json.dumps(FLIGHT))
    keys = [word for path in ("time_hour", "carrier", "flight") for word in ("--key", path)]
    cortado("table", "create", name, *keys, "--index", "by_tailnum=tailnum")
    return name


def test_status_shows_the_server(cortado: Shell) -> None:
    assert "serving" in cortado("status")
    [status] = cortado.json("status")
    assert status["state"] == "serving"
    assert status["map_limit_bytes"] > status["map_used_bytes"] > 0


def test_a_document_goes_in_and_comes_out(cortado: Shell, flights: str) -> None:
    [stored] = cortado.json("put", flights, json.dumps(DOCUMENT))
    assert cortado.json("get", flights, *KEY) == [DOCUMENT]
    assert cortado.json("get", flights, *KEY, "--meta") == [{"document": DOCUMENT, "etag": stored["etag"]}]
    shown = cortado("get", flights, *KEY)
    assert stored["etag"] in shown
    assert "N14228" in shown


def test_what_get_shows_put_takes(cortado: Shell, flights: str) -> None:
    cortado("put", flights, json.dumps(DOCUMENT))
    shown = cortado("get", flights, *KEY, "-o", "json")
    cortado("delete", flights, *KEY)
    cortado("put", flights, stdin=shown)
    assert cortado("get", flights, *KEY, "-o", "json") == shown


def test_what_scan_shows_put_takes(cortado: Shell, flights: str) -> None:
    lines = "".join(json.dumps(DOCUMENT | {"flight": number}) + "\n" for number in range(250))
    assert "250 rows stored" in cortado("put", flights, stdin=lines)
    shown = cortado("scan", flights, "-o", "json")
    assert len(shown.splitlines()) == 250
    assert cortado.json("put", flights, stdin=shown)[0]["written"] == 250
    assert cortado("put", flights, "--if-absent", stdin=shown, expect=4) == f"0 rows stored in {flights}, 250 refused\n"
    assert "250 rows stored" in cortado("put", flights, "--if-present", stdin=shown)


def test_of_many_documents_bad_ones_are_refused_by_their_place(cortado: Shell, flights: str, tmp_path: Path) -> None:
    documents = [DOCUMENT | {"flight": 0}, {"carrier": "UA"}, DOCUMENT | {"flight": "x"}, DOCUMENT | {"flight": 3}]
    file = tmp_path / "documents.jsonl"
    file.write_text("\n".join(map(json.dumps, documents)))
    assert cortado("put", flights, "--file", str(file), expect=2) == f"2 rows stored in {flights}, 2 refused\n"
    assert [line.split(": ")[2] for line in cortado.err.splitlines()] == ["row 2", "row 3"]
    assert "time_hour" in cortado.err
    cortado.json("put", flights, "--file", str(file), expect=2)
    assert [json.loads(line)["error"]["row"] for line in cortado.err.splitlines()] == [2, 3]


def test_rows_of_which_none_is_stored_have_no_timestamp(cortado: Shell, flights: str) -> None:
    [counted] = cortado.json("put", flights, expect=2, stdin='{"year": 1}\n{"year": 2}\n')
    assert (counted["written"], counted["refused"], counted["timestamp"]) == (0, 2, None)


def test_a_line_that_is_no_json_is_one_refused_row_and_all_others_are_stored_and_counted(
    cortado: Shell, flights: str, database: str, tmp_path: Path
) -> None:
    lines = [json.dumps(DOCUMENT | {"flight": number}) for number in range(2_600)]
    lines[2_400] = '{"flight": '
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(lines))
    assert cortado("put", flights, "--file", str(file), expect=2) == f"2,599 rows stored in {flights}, 1 refused\n"
    assert "row 2401: line: must be JSON" in cortado.err
    assert len(cortado.json("scan", flights)) == 2_599
    pairs = [json.dumps({"key": f"{number:04}", "value": "v"}) for number in range(2_600)]
    pairs[2_400] = "no"
    file.write_text("\n".join(pairs))
    [counted] = cortado.json("kv", "put", database, "--file", str(file), expect=2)
    assert (counted["written"], counted["refused"]) == (2_599, 1)
    assert cortado("kv", "scan", database, "--count") == "2599\n"


def test_a_load_that_is_ended_says_what_it_has_stored(cortado: Shell, flights: str, tmp_path: Path) -> None:
    lines = [json.dumps(DOCUMENT | {"flight": number}) for number in range(20)]
    lines[3] = lines[7] = lines[9] = "no"
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(lines))
    for command in ("put", flights, "--file", str(file)), ("import", flights, str(file)):
        [counted] = cortado.json(*command, "--max-bad", "1", expect=2)
        assert counted["refused"] > 1
        assert "--max-bad" in cortado.err.splitlines()[-1]


def test_a_document_over_several_lines_is_one_document(cortado: Shell, flights: str) -> None:
    assert "etag" in cortado("put", flights, stdin=json.dumps(DOCUMENT, indent=2))
    two = "\n".join(json.dumps(DOCUMENT | {"flight": number}, indent=2) for number in (1, 2))
    assert cortado("put", flights, stdin=two) == f"2 rows stored in {flights}\n"


def test_stored_data_never_moves_the_cursor_and_comes_back_to_the_byte(cortado: Shell, flights: str) -> None:
    evil = "\x9b2J\x1b]0;x\x07\x7f\u202egnp\u2028"
    document = DOCUMENT | {"tailnum": evil}
    cortado("put", flights, json.dumps(document))
    cortado("schema", "register", f"{flights}2", "-", stdin=json.dumps(FLIGHT | {"doc": evil}))
    for command in (
        ["get", flights, *KEY],
        ["scan", flights],
        ["export", flights, "-", "--format", "jsonl"],
        ["watch", "table", flights, "--after", "beginning", "--until", "now"],
        ["schema", "get", f"{flights}2"],
    ):
        for how in ([], ["-o", "json"]):
            shown = cortado(*command, *how) + cortado.err
            assert not [char for char in evil if not char.isprintable() and char in shown], (command, how)
    assert cortado.json("get", flights, *KEY) == [document]
    assert json.loads(cortado("schema", "get", f"{flights}2"))["doc"] == evil
    cortado("get", flights, evil, "UA", "1", expect=2)
    assert "\x9b" not in cortado.err


def test_an_update_changes_the_fields_that_it_names(cortado: Shell, flights: str) -> None:
    cortado("put", flights, json.dumps(DOCUMENT))
    [changed] = cortado.json("update", flights, *KEY, "--set", "delay=null", "--set", 'tailnum="N1"')
    assert changed == DOCUMENT | {"delay": None, "tailnum": "N1"}
    cortado("update", flights, *KEY, "--set", 'delay="late"', expect=2)
    assert "delay" in cortado.err
    cortado("update", flights, "2013-01-01T10:00:00Z", "UA", "1", "--set", "delay=1", expect=3)


def test_conditions_have_their_exit_code(cortado: Shell, flights: str) -> None:
    cortado("put", flights, json.dumps(DOCUMENT), "--if-present", expect=4)
    [stored] = cortado.json("put", flights, json.dumps(DOCUMENT), "--if-absent")
    cortado("put", flights, json.dumps(DOCUMENT), "--if-absent", expect=4)
    cortado("put", flights, json.dumps(DOCUMENT), "--if-etag", stored["etag"])
    cortado("put", flights, json.dumps(DOCUMENT), "--if-etag", stored["etag"], expect=4)
    cortado("delete", flights, *KEY, "--if-etag", stored["etag"], expect=4)
    cortado("delete", flights, *KEY)
    assert cortado.json("delete", flights, *KEY) == [{"existed": False}]
    cortado("get", flights, *KEY, expect=3)
    assert cortado.err == f"error: no document {' '.join(KEY)} in table {flights}\n"


def test_scans_take_ranges_indexes_filters_and_times(cortado: Shell, flights: str) -> None:
    rows = [
        DOCUMENT | {"flight": n, "carrier": c, "tailnum": f"N{n}", "delay": float(n)}
        for c in ("AA", "UA")
        for n in range(60)
    ]
    cortado("put", flights, stdin="\n".join(map(json.dumps, rows)))
    [clock] = cortado.json("now")
    assert cortado("now").strip() >= clock["now"]
    cortado("delete", flights, KEY[0], "UA", "7")

    def scanned(*arguments: str) -> list[tuple[str, int]]:
        return [(row["carrier"], row["flight"]) for row in cortado.json("scan", flights, *arguments)]

    assert len(scanned()) == 119
    assert len(scanned("--at", clock["now"])) == 120
    assert scanned(KEY[0], "UA", "--limit", "2") == [("UA", 0), ("UA", 1)]
    assert scanned(KEY[0], "UA", "--limit", "2", "--reverse") == [("UA", 59), ("UA", 58)]
    assert scanned("--start", json.dumps([KEY[0], "AA", 58]), "--end", json.dumps([KEY[0], "UA", 1])) == [
        ("AA", 58),
        ("AA", 59),
        ("UA", 0),
    ]
    assert scanned("N5", "--index", "by_tailnum") == [("AA", 5), ("UA", 5)]
    assert scanned("--filter", "delay > 57 and carrier = 'UA'") == [("UA", 58), ("UA", 59)]
    assert cortado.json("scan", flights, "N5", "--index", "by_tailnum", "--columns", "flight") == [{"flight": 5}] * 2
    shown = cortado("scan", flights)
    assert len(shown.splitlines()) == 102
    assert cortado.err == "100 documents, and there are more (--limit)\n"
    cortado("scan", flights, "--index", "nothing", expect=3)
    cortado("scan", flights, "--filter", "delay >", expect=2)
    cortado("scan", flights, "--at", "tomorrow", expect=2)


def test_tables_and_databases_are_listed_described_checked_and_split(
    cortado: Shell, flights: str, database: str
) -> None:
    cortado("put", flights, stdin="\n".join(json.dumps(DOCUMENT | {"flight": n}) for n in range(100)))
    sizes = {each["database"]: each["size"] for each in cortado.json("db", "list")}
    assert (sizes[database]["tables"], sizes[database]["rows"], sizes[database]["rows_estimated"]) == (1, 100, False)
    [table] = cortado.json("table", "list", database)
    assert (table["table"], table["size"]["rows"], table["size"]["indexes"][0]["entries"]) == (flights, 100, 100)
    assert cortado.json("table", "describe", flights) == [table]
    assert "by_tailnum" in cortado("table", "describe", flights)
    [checked] = cortado.json("table", "verify-indexes", flights)
    assert (checked["rows"], checked["entries"], checked["problems"]) == (100, 100, [])
    ranges = cortado.json("table", "split", flights, "4")
    assert (ranges[0]["start"], ranges[-1]["end"]) == (None, None)
    found = 0
    for each in ranges:
        bounds = [w for o in ("start", "end") if each[o] is not None for w in (f"--{o}", json.dumps(each[o]))]
        found += len(cortado.json("scan", flights, *bounds, "--at", each["timestamp"]))
    assert found == 100
    cortado("db", "create", database, expect=4)
    cortado("table", "describe", f"{database}.nothing", expect=3)


def test_a_schema_is_checked_with_a_code_of_its_own(cortado: Shell, flights: str, tmp_path: Path) -> None:
    broken = {
        **FLIGHT,
        "fields": [*FLIGHT["fields"][:2], {"name": "flight", "type": "string"}, {"name": "gate", "type": "int"}],
    }
    file = tmp_path / "broken.avsc"
    file.write_text(json.dumps(broken))
    shown = cortado("schema", "test-compatibility", flights, str(file), expect=5)
    assert "Flight.flight" in shown
    assert "Flight.gate" in shown
    [found] = cortado.json("schema", "test-compatibility", flights, str(file), expect=5)
    assert found["compatible"] is False
    assert len(found["incompatibilities"]) >= 2
    cortado("schema", "register", flights, str(file), expect=5)
    assert "Flight.gate" in cortado.err
    assert "compatible with" in cortado("schema", "test-compatibility", flights, "-", stdin=json.dumps(FLIGHT))
    assert "FULL" in cortado("schema", "compatibility", flights, "full")
    declared = cortado("schema", "get", flights)
    assert json.loads(declared)["name"] == "Flight"
    [again] = cortado.json("schema", "register", flights, "-", stdin=declared)
    assert again["created"] is False
    assert cortado.json("schema", "get", "--id", str(again["schema_id"]))[0]["schema"]["name"] == "Flight"
    assert cortado.json("schema", "compatibility", flights, "default") == [
        {"subject": flights, "mode": "BACKWARD_TRANSITIVE"}
    ]
    cortado("schema", "compatibility", f"{flights}-key", "none", expect=3)
    cortado("schema", "compatibility", f"{flights}-key", "none", "--new")
    for key in ('"string"', '"long"'):
        cortado("schema", "register", f"{flights}-key", "-", stdin=key)
    assert cortado("schema", "get", f"{flights}-key") == '"long"\n'
    assert "deleted version 2 of" in cortado("schema", "delete", f"{flights}-key", "--version", "2")
    assert cortado("schema", "get", f"{flights}-key") == '"string"\n'
    assert "2 (deleted)" in cortado("schema", "list", f"{flights}-key", "--deleted")
    assert len(cortado.json("schema", "list", f"{flights}-key")) == 1
    cortado("schema", "delete", f"{flights}-key", "--permanent", expect=2)
    assert "removes only deleted versions" in cortado.err
    cortado("schema", "delete", f"{flights}-key")
    assert "forgot versions 1, 2 of" in cortado("schema", "delete", f"{flights}-key", "--permanent")
    cortado("schema", "delete", flights, expect=2)
    assert "follows it" in cortado.err
    assert len(cortado.json("schema", "list", flights)) == 1
    assert flights in cortado("schema", "list")


def test_the_mode_of_all_subjects_without_one_is_shown_and_set(cortado: Shell) -> None:
    usual = [{"subject": None, "mode": "BACKWARD_TRANSITIVE"}]
    assert cortado.json("schema", "compatibility", "--default") == usual
    try:
        assert "without a mode of their own: FULL" in cortado("schema", "compatibility", "--default", "full")
        assert cortado.json("schema", "compatibility", "--default") == [{"subject": None, "mode": "FULL"}]
    finally:
        assert cortado.json("schema", "compatibility", "--default", "default") == usual
    for refused in (["s", "full", "--default"], ["--default", "full", "--new"], []):
        cortado("schema", "compatibility", *refused, expect=2)


def test_a_subject_that_does_not_exist_is_not_compatible_with_everything(cortado: Shell, database: str) -> None:
    text = json.dumps(FLIGHT)
    cortado("schema", "test-compatibility", f"{database}.nope", "-", stdin=text, expect=3)
    assert "it has no version yet" in cortado.err
    assert "compatible with" in cortado("schema", "test-compatibility", f"{database}.nope", "-", "--new", stdin=text)


def test_what_rows_come_to_is_shown_to_people_and_to_scripts(cortado: Shell, flights: str) -> None:
    late = [{**DOCUMENT, "flight": number, "carrier": "UAB"[number % 2 :], "delay": number / 2} for number in range(10)]
    cortado("put", flights, stdin="".join(json.dumps(each) + "\n" for each in late))
    assert cortado("scan", flights, "--count") == "10 documents\n"
    assert cortado.json("scan", flights, KEY[0], "AB", "--count") == [{"count": 5}]
    assert cortado.json("scan", flights, "--filter", "delay > 4", "--count") == [{"count": 1}]
    for option in (["--reverse"], ["--limit", "1"], ["--columns", "delay"], ["--aggregate", "count(*)"], ["--meta"]):
        cortado("scan", flights, "--count", *option, expect=2)
        assert f"{option[0]}: must not be given together with --count" in cortado.err
    asked = ("scan", flights, "--aggregate", "count(*) as n, sum(delay) as late, min(time_hour) as first")
    assert cortado.json(*asked) == [{"n": 10, "late": 22.5, "first": KEY[0]}]
    assert cortado.json(*asked, "--group-by", "carrier", "--limit", "1") == [
        {"carrier": "AB", "n": 5, "late": 12.5, "first": KEY[0]}
    ]
    shown = cortado(*asked, "--group-by", "carrier")
    assert shown.splitlines()[0].split() == ["carrier", "n", "late", "first"]
    assert cortado.err == "2 groups\n"


def test_aggregates_that_are_wrong_name_the_option(cortado: Shell, flights: str) -> None:
    for arguments, problem in (
        (("--aggregate", "sum(carrier)"), "--aggregate: field carrier is string: sum takes"),
        (("--aggregate", "count(*)", "--group-by", "nothing"), "--group-by: no field nothing"),
        (("--aggregate", "count(*)", "--group-by", "carrier,"), "--group-by: expected a field, found the end"),
        (("--group-by", "carrier"), "--group-by: must be given together with --aggregate"),
        (("--aggregate", "count(*)", "--reverse"), "--reverse: must not be given together with --aggregate"),
        (("--aggregate", "count(*)", "--columns", "carrier"), "--columns: must not be given together"),
    ):
        cortado("scan", flights, *arguments, expect=2)
        assert problem in cortado.err


def test_a_scan_of_keys_brings_no_values(cortado: Shell, database: str) -> None:
    cortado("kv", "put", database, "a", "secret")
    assert list(cortado.json("kv", "scan", database, "--keys-only")[0]) == ["key", "etag"]
    assert "secret" not in cortado("kv", "scan", database, "--keys-only")


def test_what_is_wrong_is_named_as_it_was_given(cortado: Shell, flights: str, database: str) -> None:
    for arguments, named in (
        (("kv", "get", database, "a", "--at", "noon"), "--at: "),
        (("get", flights, *KEY, "--at", "noon"), "--at: "),
        (("put", flights, json.dumps(DOCUMENT), "--if-etag", "x"), "--if-etag: "),
        (("kv", "scan", database, "--start", "z", "--end", "a"), "--end: "),
        (("scan", flights, "--start", "2014-01-01T00:00:00Z", "--end", "2013-01-01T00:00:00Z"), "--end: "),
        (("scan", flights, KEY[0], "--start", KEY[0]), "PART: "),
        (("scan", flights, "--columns", ""), "--columns: must name fields"),
        (("schema", "get", "x", "--id", "1"), "--id: must not be given together with SUBJECT"),
        (("watch", "kv", database, "--start", "z", "--end", "a"), "--end: "),
        (("export", flights, "out.xml"), "DESTINATION: "),
        (("scan", flights, *KEY, "too many"), "PART: must have at most 3 parts"),
        (("db", "create", "a b"), "NAME: "),
        (("table", "create", f"{flights}2", "--subject", flights, "--key", "nope"), "--key: "),
        (("table", "create", f"{flights}2", "--subject", flights, "--key", "carrier", "--index", "a=nope"), "--index"),
    ):
        cortado(*arguments, expect=2)
        assert cortado.err.startswith(f"error: {named}"), cortado.err


@pytest.mark.parametrize("arguments", [("promote", "n9"), ("remove", "n9", "--yes"), ("transfer-leader", "n9")])
def test_no_such_member_is_not_found(cortado: Shell, arguments: tuple[str, ...]) -> None:
    cortado("member", *arguments, expect=3)
    assert cortado.err == "error: no member n9\n"


def test_keys_and_values_are_any_bytes(cortado: Shell, database: str) -> None:
    cortado("kv", "put", database, "a\\x00\\xff", "b\\\\c")
    assert cortado.json("kv", "scan", database)[0]["key"] == "a\\x00\\xff"
    [pair] = cortado.json("kv", "get", database, "a\\x00\\xff")
    assert pair["value"] == "b\\\\c"
    cortado("kv", "put", database, "a\\x00\\xff", "new", "--if-value", "b\\\\c")
    cortado("kv", "put", database, "a\\x00\\xff", "new", "--if-value", "b\\\\c", expect=4)
    cortado("kv", "put", database, "k", "v", "--if-absent", "--if-value", "x", expect=2)
    assert "--if-value: must not be given together with --if-absent" in cortado.err
    cortado("kv", "put", database, "--if-value", "x", stdin="", expect=2)
    assert "--if-value: must be given with a KEY" in cortado.err
    cortado("kv", "put", database, "k", "-", stdin="from stdin")
    assert cortado("kv", "get", database, "k") == "from stdin\n"
    cortado("kv", "put", database, "k", "v", "--if-absent", expect=4)
    assert cortado.json("kv", "delete", database, "k") == [{"existed": True}]
    cortado("kv", "get", database, "k", expect=3)
    assert cortado.json("kv", "delete-range", database, "--prefix", "", "--dry-run") == [{"would_delete": 1}]
    cortado("kv", "delete-range", database, "--prefix", "", stdin="n\n", expect=130)
    cortado("kv", "delete-range", database, "--prefix", "", stdin="", expect=2)
    assert cortado.json("kv", "delete-range", database, "--prefix", "", "--yes") == [{"deleted": 1}]
    cortado("kv", "delete-range", database, expect=2)


def test_raw_values_are_written_as_they_are(server: ServerProcess, database: str, tmp_path: Path) -> None:
    value = bytes(range(256))
    file = tmp_path / "value"
    file.write_bytes(value)
    command = [sys.executable, "-m", "cortado.store.cli", "-e", server.endpoint, "kv"]
    subprocess.run([*command, "put", database, "k", "--file", str(file)], check=True, capture_output=True)
    shown = subprocess.run([*command, "get", database, "k", "--raw"], check=True, capture_output=True)
    assert shown.stdout == value


def test_the_epoch_is_bumped_only_when_the_question_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server(tmp_path / "data") as own:
        cortado = Shell(own.endpoint, capsys, monkeypatch)
        cortado("clock", "bump-epoch", stdin="n\n", expect=130)
        assert cortado.json("clock", "show")[0]["epoch"] == 0
        cortado("clock", "bump-epoch", stdin="y\n")
        assert cortado.json("clock", "bump-epoch", "--yes") == [{"epoch": 2}]
        cortado("clock", "bump-epoch", "--yes", "--from-epoch", "0", expect=2)
        assert cortado.json("clock", "show")[0]["epoch"] == 2


def test_a_data_directory_in_use_is_one_line(server: ServerProcess, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "cortado.store.cli",
        "server",
        "--data-dir",
        str(server.data_dir),
        "--listen",
        "127.0.0.1:0",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 8
    assert ended.stderr.count("\n") == 1
    assert str(server.data_dir) in ended.stderr


def test_an_address_in_use_is_one_line(server: ServerProcess, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "cortado.store.cli",
        "server",
        "--data-dir",
        str(tmp_path / "d"),
        "--listen",
        server.endpoint,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 6
    assert server.endpoint in ended.stderr.splitlines()[-1]


def test_a_server_stops_when_it_is_asked_to(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as own:
        assert own.stop() == 0
        assert "Traceback" not in own.log
        assert "listening on" in own.log


def test_a_port_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cortado.store.cli", "server", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path / "data"), "--port-file", str(tmp_path / "nix" / "port")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        f"error: --port-file: must be in a directory that exists (got {tmp_path / 'nix' / 'port'})"
    ]


def test_whoever_stops_reading_ends_the_command_with_a_code_of_its_own(
    server: ServerProcess, client: Client, database: str
) -> None:
    table = f"{database}.many"
    fields = [{"name": "id", "type": "long"}, {"name": "s", "type": "string"}]
    client.schemas.register(table, {"type": "record", "name": "R", "fields": fields})
    client.create_table(table, key=["id"])
    assert client.table(table).put_many({"id": n, "s": "x" * 100} for n in range(5_000)).written == 5_000
    command = [sys.executable, "-m", "cortado.store.cli", "-e", server.endpoint, "scan", table, "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as scan:
        assert scan.stdout is not None
        assert scan.stderr is not None
        assert json.loads(scan.stdout.readline())["id"] == 0
        scan.stdout.close()
        assert (scan.wait(60), scan.stderr.read()) == (141, b"")


@pytest.mark.parametrize("command", [["status"], ["kv", "put", "full", "k", "v"]], ids=" ".join)
def test_a_full_disk_behind_the_output_is_one_line_and_not_told_as_nothing_changed(
    server: ServerProcess, command: list[str]
) -> None:
    command = [sys.executable, "-m", "cortado.store.cli", "-e", server.endpoint, *command]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ended.returncode == 74
    assert ended.stderr == "error: standard output: cannot be written: No space left on device\n"


def test_operations_of_a_file_are_committed_together_or_not_at_all(cortado: Shell) -> None:
    def item(name: str, left: int) -> str:
        return json.dumps({"put": {"table": "tills.items", "document": {"id": name, "left": left}, "if_absent": True}})

    schema = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "string"}]}
    schema["fields"].append({"name": "left", "type": "long"})  # type: ignore[attr-defined]
    cortado("db", "create", "tills")
    cortado("schema", "register", "tills.items", "-", stdin=json.dumps(schema))
    cortado("table", "create", "tills.items", "--key", "id")
    lines = [
        item("tea", 9),
        "",
        '{"add": {"table": "tills.items", "key": ["tea"], "field": "left", "delta": -2, "min": 0}}',
        '{"update": {"table": "tills.items", "key": ["tea"], "set": {"left": 70}}}',
        '{"add": {"namespace": "till", "key": "sold", "delta": 2}}',
        '{"require": {"namespace": "till", "key": "closed", "if_absent": true}}',
    ]
    (done,) = cortado.json("txn", "apply", stdin="\n".join(lines))
    assert (done["operations"], done["sums"]) == (5, [7, 2])
    assert cortado.json("get", "tills.items", "tea", "--meta")[0] == {
        "document": {"id": "tea", "left": 70},
        "etag": done["etag"],
    }
    refused = [
        (item("tea", 1), 4, "tills.items('tea'): expected absent"),
        (
            '{"add": {"namespace": "till", "key": "sold", "delta": -3, "min": 0}}',
            4,
            "would be -1, and must be at least 0",
        ),
        ('{"delete": {"table": "tills.items", "key": []}}', 2, "line 2: delete.key: must be a list of 1 part: id"),
        ('{"put": {"table": "tills.items", "document": {"id": 1}}}', 2, "line 2: "),
        ("{", 2, "line 2: "),
        ('{"put": {"table": "tills.nothing", "document": {}}}', 3, "tills.nothing"),
    ]
    for line, code, said in refused:
        cortado("txn", "apply", stdin=f"{item('milk', 1)}\n{line}", expect=code)
        assert said in cortado.err, line
        cortado("get", "tills.items", "milk", expect=3)
