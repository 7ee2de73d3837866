"""Files that are there whole or not at all; manifests; checkpoints; formats by name; JSON that is read strictly."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import InvalidArgument, InvalidDocument, Unsupported
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.transfer import formats
from cortado.store.transfer.bad_rows import BadRows
from cortado.store.transfer.checkpoint import Checkpoint, Position, files_identity
from cortado.store.transfer.export_plan import check_directory, clear_directory
from cortado.store.transfer.files import WholeFile
from cortado.store.transfer.formats import Compression, Encoding, Format, encoding_to_write, format_to_read
from cortado.store.transfer.json_source import json_chunks
from cortado.store.transfer.manifest import (
    KEPT_OF_INDEX,
    KEPT_OF_TABLE,
    LEFT_OF_INDEX,
    LEFT_OF_TABLE,
    FileEntry,
    IndexEntry,
    Manifest,
    SubjectEntry,
    TableEntry,
    read_manifest,
    write_manifest,
)
from cortado.store.transfer.pairs import pair_from_json, pair_target
from cortado.store.transfer.parquet_source import parquet_chunks
from cortado.store.transfer.rows import BadRow


class Synced:
    """The syncs of the disk, in order: the names of files and directories, with the bytes that they had then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str, int]] = []
        sync, rename = os.fsync, os.replace

        def fsync(opened: int) -> None:
            path = Path(f"/proc/self/fd/{opened}").readlink()
            self.events.append(("synced", path.name, path.stat().st_size if path.is_file() else 0))
            sync(opened)

        def replace(path: Path, target: Path) -> Path:
            self.events.append(("named", target.name, path.stat().st_size))
            rename(path, target)
            return target

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(Path, "replace", replace)


def test_a_whole_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch)
    with WholeFile(tmp_path / "f") as file:
        file.write(b"twelve bytes")
        assert synced.events == []
    assert [event[0] for event in synced.events] == ["synced", "named", "synced"]
    assert [event[2] for event in synced.events] == [12, 12, 0]
    assert synced.events[1][1] == "f"
    assert synced.events[2][1] == tmp_path.name


def test_rows_that_are_kept_aside_are_on_the_disk_before_a_checkpoint_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch)
    bad_rows = BadRows(tmp_path / "bad")
    bad_rows.add(BadRow("f", 1, InvalidDocument("a", "is wrong"), "x"))
    sizes = bad_rows.sync()
    bad_rows.close()
    assert [event[2] for event in synced.events] == list(sizes)
    assert min(sizes) > 0


MANIFEST = Manifest(
    "0.1.0",
    "shop",
    "avro",
    "deflate",
    None,
    ("a", "b"),
    (SubjectEntry("shop.rows", "FULL", ('{"type": "record"}',)),),
    (
        TableEntry(
            "rows",
            "shop.rows",
            1,
            ("id desc",),
            (IndexEntry("by_name", ("name",), True),),
            KEEP_ALL,
            86_400_000,
            (FileEntry("rows/part-00000.avro", 3, 10, "0" * 64),),
        ),
    ),
)


# --- whole files ---------------------------------------------------------------------------------------------------


def test_a_whole_file_is_there_at_the_end_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with WholeFile(path) as file:
        file.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc"
    assert (file.bytes, file.sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    assert list(tmp_path.iterdir()) == [path]


def test_after_an_error_nothing_is_there_and_what_was_is_untouched(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), WholeFile(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file or directory"), WholeFile(tmp_path / "no" / "a"):
        pass


def test_nothing_but_a_file_is_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidArgument, match="is no regular file"), WholeFile(pipe):
        pass
    assert pipe.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_bad_rows_that_nobody_could_write_are_refused_before_the_first(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "bad", tmp_path):
        with pytest.raises(InvalidArgument, match="--bad-rows: must be a file"):
            BadRows(path, force=True)


# --- manifests -----------------------------------------------------------------------------------------------------


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST


def test_each_field_of_a_table_is_kept_by_an_export_or_left_on_purpose() -> None:
    for descriptor, entry, kept, left, more in (
        (TableDescriptor, TableEntry, KEPT_OF_TABLE, LEFT_OF_TABLE, {"schema_version", "files"}),
        (IndexDescriptor, IndexEntry, KEPT_OF_INDEX, LEFT_OF_INDEX, set()),
    ):
        assert sorted([*kept, *left]) == sorted(each.name for each in fields(descriptor))
        assert {*kept} | more == {each.name for each in fields(entry)}


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("cortado_export",), 1, "manifest"),
        (("tables", 0, "ttl_ms"), None, "manifest.tables[0].ttl_ms"),
        (("tables", 0, "retention_ms"), -2, "manifest.tables[0].retention_ms"),
        (("timestamp",), 5, "manifest.timestamp"),
        (("tables",), None, "manifest.tables"),
        (("tables", 0, "files", 0, "path"), "../../etc/passwd", "manifest.tables[0].files[0].path"),
        (("tables", 0, "files", 0, "path"), "/etc/passwd", "manifest.tables[0].files[0].path"),
        (("tables", 0, "files", 0, "rows"), -1, "manifest.tables[0].files[0].rows"),
        (("tables", 0, "files", 0, "sha256"), "abc", "manifest.tables[0].files[0].sha256"),
        (("tables", 0, "indexes", 0, "unique"), "yes", "manifest.tables[0].indexes[0].unique"),
        (("subjects", 0), [], "manifest.subjects[0]"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_named(tmp_path: Path, path: tuple[Any, ...], value: Any, field: str) -> None:
    write_manifest(tmp_path, MANIFEST)
    whole = json.loads((tmp_path / "manifest.json").read_text())
    inner = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (tmp_path / "manifest.json").write_text(json.dumps(whole))
    with pytest.raises(InvalidArgument) as caught:
        read_manifest(tmp_path)
    assert caught.value.field == field


# --- directories ---------------------------------------------------------------------------------------------------


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidArgument, match="must be empty"):
        check_directory(tmp_path, resume=True, force=False)
    with pytest.raises(InvalidArgument, match="must be empty"):
        clear_directory(tmp_path, force=True)
    assert (tmp_path / "letter.txt").exists()


def test_force_removes_what_the_manifest_names_and_nothing_else(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "part-00000.avro").write_bytes(b"x")
    (tmp_path / "rows" / "mine").write_bytes(b"x")
    with pytest.raises(InvalidArgument, match="--force"):
        check_directory(tmp_path, resume=False, force=False)
    assert check_directory(tmp_path, resume=False, force=True) is None
    clear_directory(tmp_path, force=True)
    assert [each.name for each in tmp_path.rglob("*")] == ["rows", "mine"]


# --- checkpoints ---------------------------------------------------------------------------------------------------


def test_an_import_goes_on_only_where_it_is_the_same(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    path = tmp_path / "c"
    checkpoint = Checkpoint(path, {"target": "a.b", "files": files_identity([rows])})
    assert checkpoint.look(resume=True, force=False) is None
    position = Position(0, 17, 15, 2, (30, 40))
    checkpoint.save(position)
    assert checkpoint.look(resume=True, force=False) == position
    with pytest.raises(InvalidArgument, match="--resume goes on"):
        checkpoint.look(resume=False, force=False)
    assert checkpoint.look(resume=False, force=True) is None
    rows.write_text("{ }\n")
    other = Checkpoint(path, {"target": "a.b", "files": files_identity([rows])})
    with pytest.raises(InvalidArgument, match="files"):
        other.look(resume=True, force=False)
    path.write_text("{}")
    with pytest.raises(InvalidArgument, match="--force begins anew"):
        checkpoint.look(resume=True, force=False)


def test_bad_rows_behind_the_checkpoint_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    first = BadRows(path)
    first.add(BadRow("f", 1, InvalidDocument("a", "is wrong"), "{1"))
    sizes = first.sync()
    first.add(BadRow("f", 2, InvalidDocument("a", "is wrong"), "{2"))
    first.close()
    with pytest.raises(InvalidArgument, match="--force"):
        BadRows(path)
    again = BadRows(path, sizes=sizes)
    again.add(BadRow("f", 3, InvalidDocument("a.b", "is wrong", "5"), "{3\udcff"))
    again.close()
    assert path.read_bytes() == b"{1\n{3\xff\n"
    reasons = [json.loads(line) for line in Path(f"{path}.reasons").read_text().splitlines()]
    assert reasons[1] == {
        "file": "f",
        "row": 3,
        "field": "a.b",
        "reason": "INVALID_DOCUMENT",
        "message": "a.b: is wrong (got 5)",
    }


# --- formats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "compression", "name", "expected"),
    [
        (None, None, "a.jsonl", (Format.JSONL, Compression.NONE)),
        (None, None, "a.ndjson.gz", (Format.JSONL, Compression.GZIP)),
        (None, None, "a", (Format.JSONL, Compression.NONE)),
        (None, None, "a.avro", (Format.AVRO, Compression.DEFLATE)),
        ("avro", "none", "a.jsonl", (Format.AVRO, Compression.NONE)),
    ],
)
def test_formats_by_name(format: str | None, compression: str | None, name: str, expected: tuple[Any, Any]) -> None:
    assert encoding_to_write(format, compression, name, Format.JSONL) == Encoding(*expected)


def test_what_a_format_has_not_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="none, gzip for jsonl"):
        encoding_to_write("jsonl", "zstd", "a", Format.JSONL)
    with pytest.raises(InvalidArgument, match="jsonl, csv, avro, parquet"):
        encoding_to_write("xml", None, "a", Format.JSONL)
    with pytest.raises(InvalidArgument, match="--format"):
        format_to_read(None, "rows.xml")


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for name in ("a.parquet",):
        with pytest.raises(Unsupported, match=r"cortadodb\[arrow\]"):
            encoding_to_write(None, None, name, Format.JSONL)
    with pytest.raises(Unsupported, match=r"cortadodb\[arrow\]"):
        encoding_to_write("avro", "zstd", "a", Format.JSONL)
    assert formats.format_to_read(None, "a.avro") is Format.AVRO


# --- lines ---------------------------------------------------------------------------------------------------------


def test_each_line_is_judged_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(
        b'{"key": "a", "value": "1"}\n'
        b"\n"
        b'{"key": "b", "key": "c", "value": "1"}\n'
        b'{"key": "\xff", "value": "1"}\n'
        b"nonsense\n"
        b'{"key": "d", "value": NaN}\n'
        b'{"key": "d", "value": "1", "more": 2}\n'
        b'{"key": "\\ud800", "value": "1"}\r\n'
        b'{"key": "e", "value": "2"}'
    )
    with path.open("rb") as file:
        (chunk,) = json_chunks(file, "pairs.jsonl", pair_target("n"))
    assert list(chunk.places) == [1, 9]
    assert [each.place for each in chunk.refused] == [3, 4, 5, 6, 7, 8]
    assert chunk.last == 9
    assert chunk.text(1) == '{"key": "e", "value": "2"}'
    messages = [each.error.message() for each in chunk.refused]
    for message, wanted in zip(messages, ["'key'", "UTF-8", "JSON", "NaN", "more", "key"], strict=True):
        assert wanted in message
    # The refused row is kept as it stood there, to the byte.
    kept = [(each.text or "").encode("utf-8", "surrogateescape") for each in chunk.refused]
    assert kept[1] == b'{"key": "\xff", "value": "1"}'


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "pairs.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"key": "a", "value": "1"}\n' * 1000)[:-20])
    with path.open("rb") as file, pytest.raises(InvalidArgument, match="damaged"):
        list(json_chunks(file, "pairs.jsonl.gz", pair_target("n")))


def test_a_pair_has_two_members_of_text() -> None:
    assert pair_from_json({"key": "\\x00", "value": "", "etag": "0.1.0"}) == (b"\x00", b"")
    for wrong in ([], {"key": "a"}, {"key": 1, "value": "a"}, {"key": "a", "value": None}):
        with pytest.raises(InvalidDocument):
            pair_from_json(wrong)


# --- Parquet -------------------------------------------------------------------------------------------------------


def test_parquet_goes_on_behind_the_rows_that_are_done(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "pairs.parquet"
    keys = [b"%05d" % n for n in range(250)]
    parquet.write_table(pyarrow.table({"key": keys, "value": [b"v"] * 250}), path, row_group_size=100)
    for skipped in (0, 1, 100, 249, 250):
        with path.open("rb") as file:
            chunks = list(parquet_chunks(file, "pairs.parquet", pair_target("n"), skipped))
        assert [place for chunk in chunks for place in chunk.places] == list(range(skipped + 1, 251))
        assert [chunk.text(0) for chunk in chunks][:1] == [
            f'{{"key": "{skipped:05}", "value": "v"}}' for _ in range(skipped < 250)
        ]


def test_what_is_no_parquet_file_or_has_other_columns_is_named(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "pairs.parquet"
    path.write_bytes(b"PAR1" * 10)
    with path.open("rb") as file, pytest.raises(InvalidArgument, match="Parquet"):
        list(parquet_chunks(file, "pairs.parquet", pair_target("n")))
    for columns, problem in (({"key": [b"a"]}, "value"), ({"key": [b"a"], "value": [1]}, "value")):
        parquet.write_table(pyarrow.table(columns), path)
        with path.open("rb") as file, pytest.raises(InvalidArgument, match=problem):
            list(parquet_chunks(file, "pairs.parquet", pair_target("n")))
