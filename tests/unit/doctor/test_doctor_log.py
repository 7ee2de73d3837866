"""The doctor reads a node's log files without a change to them, beside the node if it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.raft.records import HardState
from cortado.store.doctor.collect import Sources, collect
from cortado.store.doctor.log_folder import log_facts
from cortado.store.server.stores import Stores
from support.engines import open_stores


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    opened = open_stores(tmp_path / "data")
    opened.log_files.append([HardState(1, "node-1", 4, 1).log_record(1)])
    return opened


def no_sleep(_seconds: float) -> None:
    """Wait for nothing: no process writes."""


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def test_a_sound_log_is_measured_and_not_changed(stores: Stores) -> None:
    path = stores.engine.path
    before = {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in (path / "log").iterdir()}
    assert log_facts(path) == {"missing": False, "files": 1, "bytes": 1 << 20, "others_may_use": [], "damaged": []}
    assert {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in (path / "log").iterdir()} == before
    stores.close()


def test_a_flipped_bit_is_told_with_its_file_and_byte(stores: Stores) -> None:
    stores.close()
    [file] = (stores.engine.path / "log").iterdir()
    flip(file, 100)
    [damage] = log_facts(stores.engine.path, sleep_s=no_sleep)["damaged"]
    assert damage.startswith(f"{file.name} byte ")


def test_what_is_being_written_at_the_first_look_is_no_damage(stores: Stores) -> None:
    [file] = (stores.engine.path / "log").iterdir()
    flip(file, 100)
    assert log_facts(stores.engine.path, sleep_s=lambda _: flip(file, 100))["damaged"] == []
    stores.close()


def test_a_log_that_is_gone_and_one_that_others_may_use_are_told(stores: Stores) -> None:
    path = stores.engine.path
    stores.close()
    [file] = (path / "log").iterdir()
    file.chmod(0o644)
    assert log_facts(path)["others_may_use"] == [f"log/{file.name}"]
    file.unlink()
    assert log_facts(path) == {"missing": True}
    (path / "log").rmdir()
    assert log_facts(path) == {"missing": True}


def test_the_facts_of_a_directory_hold_those_of_its_log(stores: Stores) -> None:
    path = stores.engine.path
    sources = Sources(client=(), endpoints=("127.0.0.1:1",), tls=lambda: None, environment={}, data_dirs=(path,))
    directory = collect(sources).facts["data_directories"][str(path)]
    assert directory["log"]["files"] == 1
    assert f"log/{next((path / 'log').iterdir()).name}" in {each["file"] for each in directory["files"]}
    assert directory["unknown_files"] == []
    stores.close()
