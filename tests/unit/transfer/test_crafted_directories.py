"""Directories prepared by an attacker: the paths that they name stay inside of them, and errors in them are named.

A manifest or a checkpoint may come from anywhere, and so may its neighbours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from cortado.errors import InvalidArgument
from cortado.store.transfer.bad_rows import BadRows
from cortado.store.transfer.checkpoint import Checkpoint, Position
from cortado.store.transfer.export_plan import ExportPlan, Part, TablePlan, check_directory, clear_directory
from cortado.store.transfer.files import JSON_BYTES_MAX, WholeFile, below
from cortado.store.transfer.manifest import (
    CHECKPOINT,
    MANIFEST,
    FileEntry,
    Manifest,
    SubjectEntry,
    TableEntry,
    read_manifest,
    write_manifest,
)
from cortado.store.transfer.restore import Export

PATH: Final = "rows/part-00000.avro"
DONE: Final = FileEntry(PATH, 3, 10, "0" * 64)
PLAN: Final = ExportPlan(
    "c", "shop", None, "avro", "deflate", None, None, "0.1.0", (TablePlan("rows", 1, 1, (Part(PATH, None, None, 3),)),)
)
SUBJECT: Final = SubjectEntry("shop.rows", "FULL", ('{"type": "record"}',))
EXPORT: Final = Manifest(
    "0.1.0",
    "shop",
    "avro",
    "deflate",
    None,
    None,
    (SUBJECT,),
    (TableEntry("rows", "shop.rows", 1, ("id",), (), 0, 0, (DONE,)),),
)
HUGE: Final = 10**300

OUTSIDE: Final = [
    "../out",
    "rows/../../out",
    "/etc/passwd",
    "a\x00b",
    "a\nb",
    "a\x9bb",
    "",
    ".",
    "rows/",
    "//a",
    "rows//a",
    "./a",
]


def change(path: Path, at: tuple[Any, ...], value: Any) -> None:
    whole = json.loads(path.read_text())
    inner = whole
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = value
    path.write_text(json.dumps(whole))


PART: Final = ("tables", 0, "parts", 0)


@pytest.mark.parametrize("outside", OUTSIDE)
def test_a_checkpoint_leads_nowhere_outside_of_its_directory(tmp_path: Path, outside: str) -> None:
    PLAN.write(tmp_path)
    change(tmp_path / CHECKPOINT, (*PART, "path"), outside)
    with pytest.raises(InvalidArgument, match=r"checkpoint.tables\[0\].parts\[0\].path: must be a path below"):
        check_directory(tmp_path, resume=True, force=False)


@pytest.mark.parametrize("outside", OUTSIDE)
def test_a_manifest_leads_nowhere_outside_of_its_directory(tmp_path: Path, outside: str) -> None:
    write_manifest(tmp_path, EXPORT)
    change(tmp_path / MANIFEST, ("tables", 0, "files", 0, "path"), outside)
    with pytest.raises(InvalidArgument, match=r"manifest.tables\[0\].files\[0\].path: must be a path below"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("at", "value", "field"),
    [
        (("cortado_export_checkpoint",), 2, "checkpoint.cortado_export_checkpoint"),
        (("cluster_id",), None, "checkpoint.cluster_id"),
        (("database",), "a\ud800", "checkpoint.database"),
        (("only",), "rows", "checkpoint.only"),
        (("columns",), [5], "checkpoint.columns"),
        (("timestamp",), "now", "checkpoint.timestamp"),
        (("timestamp",), "0.999999999999999.0", "checkpoint.timestamp"),
        (("tables",), {}, "checkpoint.tables"),
        (("tables", 0), 5, "checkpoint.tables[0]"),
        (("tables", 0, "table_id"), "1", "checkpoint.tables[0].table_id"),
        (("tables", 0, "schema_version"), 0, "checkpoint.tables[0].schema_version"),
        ((*PART, "rows_about"), HUGE, "checkpoint.tables[0].parts[0].rows_about"),
        ((*PART, "rows_about"), True, "checkpoint.tables[0].parts[0].rows_about"),
        ((*PART, "lower"), "!", "checkpoint.tables[0].parts[0].lower"),
        ((*PART, "lower"), "/////w==", "checkpoint.tables[0].parts[0].lower"),
        ((*PART, "upper"), 5, "checkpoint.tables[0].parts[0].upper"),
        ((*PART, "path"), CHECKPOINT, "checkpoint"),
        (
            (*PART, "done"),
            {"path": "other", "rows": 0, "bytes": 0, "sha256": "0" * 64},
            "checkpoint.tables[0].parts[0].done",
        ),
        (
            (*PART, "done"),
            {"path": PATH, "rows": 0, "bytes": -1, "sha256": "0" * 64},
            "checkpoint.tables[0].parts[0].done.bytes",
        ),
        ((*PART, "done"), [], "checkpoint.tables[0].parts[0].done"),
    ],
)
def test_what_is_wrong_in_a_checkpoint_is_named(tmp_path: Path, at: tuple[Any, ...], value: Any, field: str) -> None:
    PLAN.write(tmp_path)
    change(tmp_path / CHECKPOINT, at, value)
    with pytest.raises(InvalidArgument) as caught:
        ExportPlan.read(tmp_path)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("at", "value", "field"),
    [
        (("timestamp",), "soon", "manifest.timestamp"),
        (("tables", 0, "schema_version"), 0, "manifest.tables[0].schema_version"),
        (("tables", 0, "schema_version"), 2, "manifest.tables[0].schema_version"),
        (("tables", 0, "files", 0, "bytes"), HUGE, "manifest.tables[0].files[0].bytes"),
        (("tables", 0, "files", 0, "path"), MANIFEST, "manifest"),
        (("tables", 0, "subject"), "other", "manifest"),
        (("subjects", 0, "compatibility"), "SOME", "manifest.subjects[0].compatibility"),
        (("subjects", 0, "schemas"), ["\udc80"], "manifest.subjects[0].schemas"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_named(tmp_path: Path, at: tuple[Any, ...], value: Any, field: str) -> None:
    write_manifest(tmp_path, EXPORT)
    change(tmp_path / MANIFEST, at, value)
    with pytest.raises(InvalidArgument) as caught:
        read_manifest(tmp_path)
    assert caught.value.field == field


def test_a_file_that_two_tables_name_is_refused(tmp_path: Path) -> None:
    twice = (EXPORT.tables[0], EXPORT.tables[0])
    write_manifest(tmp_path, Manifest(*([getattr(EXPORT, each) for each in Manifest.__slots__][:-1]), twice))
    with pytest.raises(InvalidArgument, match="each file once"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        "[" * 300 + "]" * 300,
        "{",
        "\ufeff{}",
        '{"tables": ' + "9" * 5000 + "}",
        '{"a": NaN}',
    ],
)
def test_a_manifest_that_is_no_strict_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InvalidArgument, match=r"manifest: is not what was written there: must (be JSON|hold)"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_bytes(b"\xff")
    with pytest.raises(InvalidArgument, match="must be UTF-8"):
        read_manifest(tmp_path)


def test_a_manifest_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    with (tmp_path / MANIFEST).open("wb") as file:
        file.truncate(JSON_BYTES_MAX + 1)
    with pytest.raises(InvalidArgument, match="it has more than"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", [MANIFEST, CHECKPOINT])
def test_a_pipe_in_the_place_of_a_manifest_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidArgument, match="no regular file"):
        (read_manifest if name == MANIFEST else ExportPlan.read)(tmp_path)


# --- objects in the way --------------------------------------------------------------------------------------------


def _linked_directory(directory: Path, outside: Path) -> None:
    (directory / "rows").symlink_to(outside)


def _linked_file(directory: Path, outside: Path) -> None:
    (directory / "rows").mkdir()
    (directory / PATH).symlink_to(outside / "part-00000.avro")


def _pipe(directory: Path, _outside: Path) -> None:
    (directory / "rows").mkdir()
    os.mkfifo(directory / PATH)


def _directory(directory: Path, _outside: Path) -> None:
    (directory / PATH).mkdir(parents=True)


def _file_for_a_directory(directory: Path, _outside: Path) -> None:
    (directory / "rows").write_bytes(b"x")


IN_THE_WAY: Final = [_linked_directory, _linked_file, _pipe, _directory, _file_for_a_directory]


@pytest.mark.parametrize("put", IN_THE_WAY)
def test_links_and_devices_in_an_export_are_neither_read_nor_written_nor_removed(
    tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    directory, outside = tmp_path / "export", tmp_path / "outside"
    directory.mkdir()
    outside.mkdir()
    kept = outside / "part-00000.avro"
    kept.write_bytes(b"0123456789")
    put(directory, outside)
    with pytest.raises(InvalidArgument, match="and is left alone"):
        below(directory, PATH)
    write_manifest(directory, EXPORT)
    with pytest.raises(InvalidArgument, match="and is left alone"):
        Export.open(directory).check_files()
    with pytest.raises(InvalidArgument, match="and is left alone"):
        clear_directory(directory, force=True)
    assert (directory / MANIFEST).exists()
    assert kept.read_bytes() == b"0123456789"


def test_a_place_that_is_free_or_holds_a_file_is_taken(tmp_path: Path) -> None:
    assert below(tmp_path, PATH) == tmp_path / PATH
    (tmp_path / "rows").mkdir()
    assert below(tmp_path, PATH) == tmp_path / PATH
    (tmp_path / PATH).write_bytes(b"x")
    assert below(tmp_path, PATH) == tmp_path / PATH


@pytest.mark.parametrize("how", ["link", "pipe"])
def test_a_file_in_the_making_follows_no_link_and_waits_for_no_pipe(tmp_path: Path, how: str) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"mine")
    partial = tmp_path / "a.partial"
    if how == "link":
        partial.symlink_to(kept)
    else:
        os.mkfifo(partial)
    with WholeFile(tmp_path / "a") as file:
        file.write(b"theirs")
    assert kept.read_bytes() == b"mine"
    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert not partial.is_symlink()


def test_force_begins_anew_over_a_checkpoint_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_text('{"tables": [{"parts": [{"path": "../x"}]}]}')
    outside = tmp_path.parent / "x"
    outside.write_bytes(b"mine")
    with pytest.raises(InvalidArgument):
        check_directory(tmp_path, resume=True, force=False)
    assert check_directory(tmp_path, resume=True, force=True) is None
    clear_directory(tmp_path, force=True)
    assert list(tmp_path.iterdir()) == []
    assert outside.read_bytes() == b"mine"


# --- an import's checkpoint ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("cortado_import_checkpoint",), 9),
        (("position",), 5),
        (("position", "file"), -1),
        (("position", "file"), "0"),
        (("position", "row"), HUGE),
        (("position", "row"), 1.5),
        (("position", "written"), None),
        (("position", "bad_sizes"), [1]),
        (("position", "bad_sizes"), [-1, 0]),
        (("position", "bad_sizes"), "ab"),
    ],
)
def test_what_is_wrong_in_an_imports_checkpoint_is_named(tmp_path: Path, at: tuple[Any, ...], value: Any) -> None:
    checkpoint = Checkpoint(tmp_path / "c", {"target": "a.b"})
    checkpoint.save(Position(0, 17, 15, 2, (30, 40)))
    change(tmp_path / "c", at, value)
    with pytest.raises(InvalidArgument, match="--force begins anew") as caught:
        checkpoint.look(resume=True, force=False)
    assert caught.value.field.startswith(".".join(["--checkpoint", str(at[0])]))


def test_bad_rows_are_not_made_longer_than_they_are(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"12345")
    rows = BadRows(tmp_path / "bad", sizes=(1 << 50, 0))
    with pytest.raises(InvalidArgument, match="is shorter than"):
        rows._opened()
    assert (tmp_path / "bad").stat().st_size == 5
