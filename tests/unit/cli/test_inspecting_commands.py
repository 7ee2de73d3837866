"""Keys in and out, a stopped directory without a server, and the scripts for shells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cortado.errors import DataDirectoryError
from cortado.raft.records import HardState, nothing
from cortado.store.cli import failures
from cortado.store.cli.app import run
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import encode_version
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.snapshots.marker import Marker, applied_key, marker_key
from cortado.store.server.inspection.stopped import StoppedNode
from support.engines import open_lmdb, open_stores
from support.inspected import flipped

TS = Timestamp(0, 1_763_643_600_000, 2)
NOBODY = ("-e", "127.0.0.1:1")
PAIR = "6b3073657373696f6e730001000000002c757365722f310001"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return a directory with two pairs, one of them damaged."""
    stores = open_stores(tmp_path / "data")
    with stores.engine.write() as txn:
        txn.put(Space.DATA, *encode_version(kv_key("n", b"sound"), b"v", TS))
        key, value = encode_version(kv_key("n", b"damaged"), b"v", TS)
        txn.put(Space.DATA, key, flipped(value, 1))
        txn.put(Space.META, applied_key(1), AppliedState(index=5, term=1, last_ts=TS).encode())
    stores.log_files.append([HardState(1, "node-1", 4, 1).log_record(1), nothing(5, 1).log_record(1)])
    stores.close()
    return tmp_path / "data"


# --- keys ----------------------------------------------------------------------------------------------------------


def test_a_key_that_is_encoded_is_decoded_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debug", "key", "encode", "kv", "sessions", "user/1", "--version-at", str(TS)]) == failures.OK
    [encoded] = lines(capsys)
    assert encoded.startswith(PAIR)
    assert run(["debug", "key", "decode", encoded, "-o", "json", *NOBODY]) == failures.OK
    [shown] = map(json.loads, lines(capsys))
    assert shown["timestamp"] == str(TS)
    assert [part["value"] for part in shown["parts"]] == ["sessions", "dXNlci8x"]


def test_a_key_is_decoded_without_a_server_by_ids_and_from_escaped_text(capsys: pytest.CaptureFixture[str]) -> None:
    escaped = "t\\x00\\x03\\x00\\x07r0UA\\x00\\x01"
    assert run(["debug", "key", "decode", escaped, PAIR, "ff", *NOBODY, "--timeout", "0.2"]) == failures.OK
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ['row 3.7 ("UA")', "kv (\"sessions\", b'user/1')", "raw ff"]
    assert "tables are shown by their ids" in shown.err


@pytest.mark.parametrize("namespace", ["", "n" * 600])
def test_a_key_that_cannot_be_is_refused(namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debug", "key", "encode", "kv", namespace, "k"]) == failures.USAGE
    assert capsys.readouterr().out == ""


# --- a stopped directory -------------------------------------------------------------------------------------------


def test_a_stopped_directory_is_scrubbed_and_not_changed(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in stopped.rglob("*") if path.is_file()}
    assert run(["scrub", "--data-dir", str(stopped), "-o", "json"]) == failures.DAMAGE
    finding, verdict = map(json.loads, lines(capsys))
    assert (finding["finding"]["kind"], finding["finding"]["replicas"]) == ("CHECKSUM", ["node-1"])
    assert verdict["scrub"]["problems"] == 1
    assert run(["debug", "mvcc", "kv", "n", "sound", "--data-dir", str(stopped)]) == failures.OK
    assert run(["debug", "mvcc", "kv", "n", "damaged", "--data-dir", str(stopped)]) == failures.DAMAGE
    assert run(["debug", "raft", "--data-dir", str(stopped)]) == failures.OK
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before}
    assert sorted(before) == sorted(path for path in stopped.rglob("*") if path.is_file())


def test_a_stopped_nodes_log_is_shown_with_its_vote_and_entries(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debug", "raft", "--data-dir", str(stopped), "-o", "json"]) == failures.OK
    state, *entries = map(json.loads, lines(capsys))
    assert (state["state"]["term"], state["state"]["voted_for"], state["state"]["base_index"]) == (1, "node-1", 4)
    assert [(each["entry"]["index"], each["entry"]["kind"]) for each in entries] == [(5, "nothing")]


def test_a_flipped_bit_in_a_log_file_is_named_by_file_and_byte(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [file] = (stopped / "log").iterdir()
    content = bytearray(file.read_bytes())
    content[content.index(b"node-1")] ^= 1
    file.write_bytes(content)
    assert run(["debug", "raft", "--data-dir", str(stopped)]) == failures.DAMAGE
    assert f"the log file {file.name} (byte " in capsys.readouterr().err
    assert run(["scrub", "--data-dir", str(stopped), "-o", "json"]) == failures.DAMAGE
    of_log = next(each["finding"] for each in map(json.loads, lines(capsys)) if "finding" in each)
    assert (of_log["space"], of_log["kind"]) == ("log", "CHECKSUM")
    assert of_log["text"].startswith(f"log file {file.name} byte ")
    assert file.read_bytes() == content


def test_a_copy_without_a_lock_file_is_read_and_gets_none(stopped: Path) -> None:
    (stopped / "LOCK").unlink()
    assert run(["debug", "raft", "--data-dir", str(stopped)]) == failures.OK
    assert not (stopped / "LOCK").exists()


def test_a_directory_in_use_is_refused(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = open_lmdb(stopped)
    try:
        for command in (["debug", "raft"], ["scrub"], ["debug", "mvcc", "kv", "n", "sound"]):
            assert run([*command, "--data-dir", str(stopped)]) == failures.DAMAGE
            assert f"in use by process {os.getpid()}" in capsys.readouterr().err
    finally:
        engine.close()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="tells by /proc who is alive")
def test_a_server_is_refused_while_a_directory_is_read_and_no_dead_process_is_blamed(stopped: Path) -> None:
    (stopped / "LOCK").write_text(f"{2**22 + 1}\n")
    with StoppedNode(stopped), pytest.raises(DataDirectoryError, match="in use by a command that reads it"):
        open_lmdb(stopped)


def test_data_that_is_no_state_is_not_shown_as_one(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = open_lmdb(stopped)
    with engine.write() as txn:
        txn.put(Space.META, marker_key(1), Marker("snapshot", 9, 2).encode())
    engine.close()
    assert run(["debug", "mvcc", "kv", "n", "sound", "--data-dir", str(stopped)]) == failures.USAGE
    assert "receiving a snapshot" in capsys.readouterr().err
    assert run(["debug", "raft", "--data-dir", str(stopped), "-o", "json"]) == failures.OK
    assert json.loads(lines(capsys)[0])["state"]["installing"]


@pytest.mark.parametrize("hurt", [lambda path: shutil.rmtree(path), lambda path: (path / "FORMAT").write_text("x")])
def test_what_is_no_directory_of_a_node_is_refused_in_one_line(
    stopped: Path, hurt: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(hurt)
    hurt(stopped)
    assert run(["scrub", "--data-dir", str(stopped)]) == failures.DAMAGE
    assert capsys.readouterr().err.count("\n") == 1
    assert not (stopped / "identity.json").exists() or (stopped / "FORMAT").read_text() == "x"


def test_nobody_to_scrub_is_unavailable(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrub", *NOBODY, "--timeout", "0.5"]) == failures.UNAVAILABLE
    assert "127.0.0.1:1" in capsys.readouterr().err


# --- shells --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == failures.OK
    assert f"_CORTADO_COMPLETE={shell}_complete" in capsys.readouterr().out
    assert run(["completion", "dos"]) == failures.USAGE


def test_bash_completes_commands_with_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["completion", "bash"])
    script = tmp_path / "cortado.bash"
    script.write_text(capsys.readouterr().out)
    command = tmp_path / "cortado"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cortado.store.cli "$@"\n')
    command.chmod(0o755)
    typed = 'COMP_WORDS=(cortado debug mvcc k); COMP_CWORD=3; _cortado_completion cortado; echo "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    shown = subprocess.run(
        ["bash", "-c", f"source {script}; {typed}"], capture_output=True, text=True, check=True, env=environment
    )
    assert shown.stdout.split() == ["kv", "key"]
