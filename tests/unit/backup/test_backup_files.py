"""A backup's files: whole ones are read, and every changed byte is refused by name."""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib
from pathlib import Path

import pytest

from cortado.errors import CortadoError, DataLoss, InvalidArgument, Unsupported
from cortado.store.backup import chain
from cortado.store.backup.chain import Empty, Found, chain_of, look, readable_from
from cortado.store.backup.check import check_backup
from cortado.store.backup.manifest import (
    CHECKPOINT,
    MANIFEST,
    SEGMENTS_MAX,
    BaseBackup,
    Checkpoint,
    RangeEntry,
    part_name,
    segment_name,
    write_checkpoint,
)
from cortado.store.backup.part_file import FORMAT, MAGIC
from cortado.store.backup.runs import ContentDigest, Run, decode_run
from cortado.store.clock.timestamp import Timestamp
from cortado.store.transfer.directory import Directory, LocalDirectory
from support.backups import shape, small_run, write_backup

BASE = BaseBackup("aa", "0.9.0", "../base")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    directory = tmp_path / "whole"
    write_backup(directory, shape(), [[small_run(b"a"), small_run(b"b", b"c", value=b"D")], [small_run(b"q")]])
    return directory


def test_a_whole_backup_gives_what_was_written(whole: Path) -> None:
    assert check_backup(whole).versions == 4
    [backup] = chain_of(whole)
    assert [run.values for run in backup.runs(0)] == [(b"Ptea",), (b"D", b"D")]


@pytest.mark.parametrize("name", [MANIFEST, part_name(0), part_name(1)])
def test_every_byte_that_is_changed_is_refused_by_the_name_of_its_file(whole: Path, name: str) -> None:
    path = whole / name
    written = path.read_bytes()
    for place in range(len(written)):
        path.write_bytes(written[:place] + bytes([written[place] ^ 0x11]) + written[place + 1 :])
        with pytest.raises(CortadoError) as refused:
            check_backup(whole)
        # A manifest with a damaged mark may be another program's.
        expected = DataLoss if name != MANIFEST else DataLoss | InvalidArgument
        assert isinstance(refused.value, expected), (place, refused.value)
        assert name in refused.value.message(), (place, refused.value.message())


@pytest.mark.parametrize("name", [MANIFEST, part_name(0), part_name(1)])
def test_a_file_that_is_cut_off_or_goes_on_is_refused(whole: Path, name: str) -> None:
    path = whole / name
    written = path.read_bytes()
    for changed in [*(written[:place] for place in range(len(written) - 1)), written + b"\0", written + written]:
        path.write_bytes(changed)
        with pytest.raises((DataLoss, InvalidArgument)) as refused:
            check_backup(whole)
        assert name in refused.value.message()


def test_a_part_that_is_gone_or_is_another_one_is_refused(whole: Path) -> None:
    first, second = whole / part_name(0), whole / part_name(1)
    shutil.copy(first, second)
    with pytest.raises(DataLoss, match=r"part-00001.cortado \(it is of another backup, or another part"):
        check_backup(whole)
    second.unlink()
    with pytest.raises(InvalidArgument, match=r"part-00001.cortado"):
        check_backup(whole)


@pytest.mark.parametrize("found", [0, FORMAT - 1, FORMAT + 1])
def test_a_part_of_another_format_is_refused_as_that(whole: Path, found: int) -> None:
    path = whole / part_name(0)
    prefix = MAGIC + found.to_bytes(4)
    path.write_bytes(prefix + zlib.crc32(prefix).to_bytes(4) + path.read_bytes()[len(prefix) + 4 :])
    with pytest.raises(
        Unsupported, match=f"part-00000.cortado is of format {found}, this version reads format {FORMAT}"
    ):
        check_backup(whole)


@pytest.mark.parametrize("found", [0, FORMAT - 1, FORMAT + 1])
def test_a_manifest_of_another_format_is_refused_as_that(whole: Path, found: int) -> None:
    value = {**json.loads((whole / MANIFEST).read_text()), "cortado_backup": found}
    (whole / MANIFEST).write_text(json.dumps(value))
    with pytest.raises(DataLoss, match="its digest is not that of what it says"):
        check_backup(whole)
    del value["digest"]
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    (whole / MANIFEST).write_text(json.dumps({**value, "digest": hashlib.sha256(text.encode()).hexdigest()}))
    with pytest.raises(Unsupported, match=f"manifest.json is of format {found}, this version reads format {FORMAT}"):
        check_backup(whole)


def test_what_a_directory_holds_is_told(tmp_path: Path, whole: Path) -> None:
    assert look(LocalDirectory(tmp_path / "nowhere")) == Empty()
    (tmp_path / "empty").mkdir()
    assert look(LocalDirectory(tmp_path / "empty")) == Empty()
    begun = tmp_path / "begun"
    begun.mkdir()
    checkpoint = Checkpoint(shape(), (RangeEntry("6b", "6c", 3),))
    write_checkpoint(LocalDirectory(begun), checkpoint)
    assert look(LocalDirectory(begun)) == checkpoint
    with pytest.raises(InvalidArgument, match="holds a backup that is not done"):
        check_backup(begun)
    # The manifest counts, even if other files are still there.
    shutil.copy(begun / CHECKPOINT, whole / CHECKPOINT)
    assert check_backup(whole).versions == 4


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"holds something that is no backup \(notes.txt\)"):
        look(LocalDirectory(tmp_path))
    (tmp_path / MANIFEST).write_text('{"cortado_export": 1}')
    with pytest.raises(InvalidArgument, match="must have cortado_backup: it is of no backup"):
        look(LocalDirectory(tmp_path))


def test_a_chain_names_a_backup_that_is_missing_or_another_one(tmp_path: Path) -> None:
    changes = tmp_path / "changes"
    write_backup(changes, shape("bb", "0.12.0", BASE), [[small_run(b"a", wall_ms=11)]])
    with pytest.raises(InvalidArgument, match=r"follows the backup aa of 0.9.0, which is not in"):
        chain_of(changes)
    write_backup(tmp_path / "base", shape("cc"), [[small_run(b"a")]])
    with pytest.raises(InvalidArgument, match=r"follows the backup aa of 0.9.0; in .*base is cc"):
        chain_of(changes)
    shutil.rmtree(tmp_path / "base")
    write_backup(tmp_path / "base", shape(), [[small_run(b"a")]])
    chain = chain_of(changes)
    assert [each.manifest.shape.backup_id for each in chain] == ["aa", "bb"]
    assert check_backup(changes).backups == 2
    assert readable_from(chain) == Timestamp(0, 12, 0)


def test_a_digest_of_versions_does_not_depend_on_how_they_are_cut() -> None:
    run = small_run(*[bytes([name]) for name in range(9)])
    whole, pieces = ContentDigest(), ContentDigest()
    whole.add(run)
    for begin, end in ((0, 2), (2, 8), (8, 9)):
        pieces.add(Run(run.keys[begin:end], run.timestamps[begin:end], run.values[begin:end]))
    assert whole.hexdigest() == pieces.hexdigest()
    other = ContentDigest()
    other.add(small_run(*[bytes([name]) for name in range(9)], wall_ms=8))
    assert other.hexdigest() != whole.hexdigest()


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (Run([b"kb", b"ka"], [bytes(12)] * 2, [b"P", b"P"]), "is out of its order"),
        (Run([b"k"], [bytes(12)], [b"X"]), "of a kind that this version does not know"),
        (Run([b"k"], [bytes(12)], [b""]), "of a kind that this version does not know"),
        (Run([b""], [bytes(12)], [b"P"]), "a key of 0 or 0 bytes"),
        (Run([b"k" * 500], [bytes(12)], [b"P"]), "a key of 500 or 500 bytes"),
    ],
)
def test_a_run_that_no_engine_could_hold_is_refused(run: Run, problem: str) -> None:
    with pytest.raises(DataLoss, match=problem):
        decode_run(run.encode(), "a run")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_backups_that_follow_each_other_in_a_circle_are_read_once(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(count):
        follows = BaseBackup(f"id{(place + 1) % count}", "0.9.0", f"../{(place + 1) % count}")
        write_backup(tmp_path / str(place), shape(f"id{place}", base=follows), [[small_run(b"a")]])
    looked, real = list[str](), chain.look

    def look(directory: Directory) -> Found:
        looked.append(str(directory))
        return real(directory)

    monkeypatch.setattr(chain, "look", look)
    with pytest.raises(InvalidArgument, match="is of a backup that follows itself"):
        chain_of(tmp_path / "0")
    assert len(looked) <= count + 1


@pytest.mark.parametrize("path", ["../a\0b", "../\x1b[31m", "../" + "a" * 5_000])
def test_a_path_of_what_is_followed_that_no_disk_takes_is_refused(tmp_path: Path, path: str) -> None:
    write_backup(tmp_path / "b", shape("bb", base=BaseBackup("aa", "0.9.0", path)), [[small_run(b"a")]])
    with pytest.raises(InvalidArgument, match=r"base.path: must be a path that prints, of at most 4096 bytes"):
        chain_of(tmp_path / "b")


def test_a_segment_beyond_the_limit_is_refused_and_not_counted_up_to(whole: Path) -> None:
    name = segment_name(SEGMENTS_MAX + 1)
    write_backup(whole / name, shape("bb", base=BaseBackup("aa", "0.9.0", "..")), [[small_run(b"a")]])
    with pytest.raises(InvalidArgument, match=f"DIR: holds {name}, and has at most {SEGMENTS_MAX} segments"):
        chain_of(whole)


def test_a_manifest_of_more_parts_than_memory_is_meant_for_is_refused(whole: Path) -> None:
    manifest = json.loads((whole / MANIFEST).read_text())
    manifest["parts"] *= 100_000
    manifest["parts"] = [{"versions": 1, "bytes": 1}] * len(manifest["parts"])
    (whole / MANIFEST).write_text(json.dumps(manifest, separators=(",", ":")))
    with pytest.raises(DataLoss, match="must hold at most 500000 members, items, objects and arrays"):
        look(LocalDirectory(whole))
