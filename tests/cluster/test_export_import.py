"""Tables, databases and namespaces into files and back: nothing is lost, and every run ends clearly."""

from __future__ import annotations

import json
import signal
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from cortado.schema.values import Branch, Duration
from cortado.store.client import Client, Index
from cortado.store.transfer.manifest import CHECKPOINT
from support.command_line import CommandLine
from support.server_process import ServerProcess
from support.small_disk import mounted_disk

pytestmark = pytest.mark.process

FORMATS = ["rows.jsonl", "rows.jsonl.gz", "rows.csv", "rows.csv.gz", "rows.avro", "rows.parquet"]
FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "bytes", "type": "bytes"},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "nanos", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "lasts", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
        {"name": "either", "type": ["null", "long", "string"]},
        {"name": "colour", "type": {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}},
        {"name": "ratio", "type": "double"},
        {"name": "small", "type": "float"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
    ],
}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "more", "type": "string", "default": "dflt"}]}
RATIOS = [0.1, float("nan"), float("inf"), float("-inf"), -0.0, 5e-324]
SIMPLE = {
    "type": "record",
    "name": "Simple",
    "fields": [{"name": "id", "type": "long"}, {"name": "value", "type": "long"}],
}


def row(n: int) -> dict[str, Any]:
    return {
        "id": (1 << 62) + n,
        "bytes": bytes([n % 256, 0, 255]),
        "fixed": b"\x00\xff\x80",
        "price": Decimal("-1234567890.0001") * n,
        "at": datetime(2013, 1, 31, 23, 59, 59, n, UTC),
        "nanos": 1_700_000_000_000_000_001 + n,
        "day": date(1, 1, 1),
        "uuid": UUID(int=n),
        "lasts": Duration(1, 2, n),
        "either": [None, Branch("long", n), Branch("string", "x\u2028\x00")][n % 3],
        "colour": ["RED", "BLUE"][n % 2],
        "ratio": RATIOS[n % len(RATIOS)],
        "small": RATIOS[n % 4],
        "name": None if n % 4 == 0 else f"näme{n % 7}",
        "tags": {"a\n": [n, -n], "": []},
    }


@pytest.fixture
def cortado(
    server: ServerProcess,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(server.endpoint, capsysbinary, monkeypatch)


@pytest.fixture
def rows(client: Client, database: str) -> str:
    """A table whose rows were written by two versions of its schema."""
    name = f"{database}.rows"
    client.schemas.register(name, FIRST)
    client.create_table(
        name, ["id desc"], indexes=[Index("by_name", ["name", "id"]), Index("u", ["uuid"], unique=True)]
    )
    assert client.table(name).put_many(map(row, range(60))).written == 60
    client.schemas.register(name, SECOND)
    newer = ({**row(n), "more": f"more{n}"} for n in range(60, 90))
    with Client(client.endpoint) as fresh:
        assert fresh.table(name).put_many(newer).written == 30
    return name


def bodies(client: Client, table: str) -> list[bytes]:
    """A table's rows as its newest schema writes them."""
    codec = client.table(table).codec
    return [codec.encode(found.value)[1] for found in client.table(table).scan()]


def simple(client: Client, name: str, count: int) -> str:
    client.schemas.register(name, SIMPLE)
    client.create_table(name, ["id"])
    assert client.table(name).put_many({"id": n, "value": n * n} for n in range(count)).written == count
    return name


def sound(client: Client, table: str, count: int) -> None:
    report = client.verify_indexes(table)
    assert (report.rows_checked, report.problems) == (count, ())


# --- round trips ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FORMATS)
def test_a_table_comes_back_from_a_file(cortado: CommandLine, client: Client, rows: str, file: str) -> None:
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    cortado("export", rows, file)
    copy = f"{rows}_copy"
    Path("schema.avsc").write_text(json.dumps(SECOND))
    with_schema = ["--schema", "schema.avsc"] if "jsonl" in file or "csv" in file else []
    making = ["--create", "--key", "id desc", "--index", "by_name=name,id", "--unique", "u=uuid", *with_schema]
    [done] = cortado.json("import", copy, file, *making)
    assert (done["written"], done["refused"]) == (90, 0)
    assert bodies(client, copy) == bodies(client, rows)
    sound(client, copy, 90)
    assert not list(Path().glob("*checkpoint*"))
    # Once more changes nothing, and the same rows are the same bytes.
    cortado("import", copy, file)
    cortado("export", rows, f"again-{file}", "--at", _timestamp(cortado, rows))
    sound(client, copy, 90)


def _timestamp(cortado: CommandLine, table: str) -> str:
    cortado("export", table)
    return cortado.err.split()[-1]


def test_one_document_goes_through_json_to_the_byte(cortado: CommandLine, client: Client, rows: str) -> None:
    copy = f"{rows}_json"
    client.schemas.register(copy, SECOND)
    client.create_table(copy, ["id desc"])
    for n in (1, 2, 3, 4, 70):
        shown = cortado("get", rows, str((1 << 62) + n), "-o", "json")
        cortado("put", copy, stdin=shown)
    shown = cortado("scan", rows, "-o", "json")
    cortado("put", copy, stdin=shown)
    assert bodies(client, copy) == bodies(client, rows)


def test_pairs_of_any_bytes_go_through_json(cortado: CommandLine, client: Client, database: str) -> None:
    pairs = [(b"\x00\xff\\x41", b"\\"), (b"key", "ü\u2028\n".encode()), (b"z", b"")]
    for pair in pairs:
        client.kv(database).put(*pair)
    cortado("kv", "put", f"{database}-a", stdin=cortado("kv", "scan", database, "-o", "json"))
    cortado("kv", "put", f"{database}-b", stdin=cortado("kv", "get", database, "key", "-o", "json"))
    cortado("import", f"kv:{database}-c", "-", stdin=cortado("export", f"kv:{database}"))
    cortado("export", f"kv:{database}", "pairs.avro")
    cortado("import", f"kv:{database}-d", "pairs.avro")
    for copy in "acd":
        assert [pair[:2] for pair in client.kv(f"{database}-{copy}").scan()] == pairs
    assert [pair[:2] for pair in client.kv(f"{database}-b").scan()] == [pairs[1]]
    cortado("kv", "put", f"{database}-a", "--if-absent", stdin=cortado("kv", "scan", database, "-o", "json"), expect=4)
    cortado("import", f"kv:{database}-a", "pairs.avro", "--mode", "insert", expect=4)


@pytest.mark.parametrize("file", FORMATS)
def test_no_rows_and_one_huge_row(cortado: CommandLine, client: Client, database: str, file: str) -> None:
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    blob = {"type": "record", "name": "B", "fields": [{"name": "id", "type": "long"}, {"name": "b", "type": "bytes"}]}
    for name in ("blobs", "copy"):
        client.schemas.register(f"{database}.{name}", blob)
        client.create_table(f"{database}.{name}", ["id"])
    cortado("export", f"{database}.blobs", file)
    assert cortado.json("import", f"{database}.copy", file)[0]["written"] == 0
    client.table(f"{database}.blobs").put({"id": 1, "b": b"\xff" * ((1 << 20) - 100)})
    cortado("export", f"{database}.blobs", file, expect=2)
    assert "--force" in cortado.err
    cortado("export", f"{database}.blobs", file, "--force")
    assert cortado.json("import", f"{database}.copy", file)[0]["written"] == 1
    assert bodies(client, f"{database}.copy") == bodies(client, f"{database}.blobs")


def test_a_database_comes_back_with_everything_of_it(
    cortado: CommandLine, client: Client, rows: str, database: str
) -> None:
    simple(client, f"{database}.simple", 1_000)
    client.schemas.set_compatibility(f"{database}.simple", "FULL")
    shared = f"shared-{database}"
    client.schemas.set_compatibility(shared, "NONE")
    client.schemas.register(shared, '"string"')
    client.schemas.register(shared, SIMPLE)
    client.schemas.delete(shared, 1)
    client.create_table(f"{database}.empty", ["id"], subject=shared)
    client.create_table(f"{database}.Simple", ["id"], subject=shared)
    [done] = cortado.json("export", database, "backup", "--part-rows", "300")
    assert (done["rows"], Path("backup/rows/part-00000.avro").exists()) == (1_090, True)
    folders = [each.name.casefold() for each in Path("backup").iterdir() if each.is_dir()]
    assert len(set(folders)) == 4, "on a file system to which case is nothing, too"
    copy = f"{database}-copy"
    cortado("import", copy, "backup", "--dry-run")
    assert copy not in client.databases()
    [restored] = cortado.json("import", copy, "backup")
    assert (restored["written"], restored["refused"]) == (1_090, 0)
    for name in ("rows", "simple"):
        assert bodies(client, f"{copy}.{name}") == bodies(client, f"{database}.{name}")
        before, after = client.describe(f"{database}.{name}"), client.describe(f"{copy}.{name}")
        assert (after.key, [(i.name, i.parts, i.unique) for i in after.indexes]) == (
            before.key,
            [(i.name, i.parts, i.unique) for i in before.indexes],
        )
        versions = [each.schema for each in client.schemas.versions(f"{database}.{name}")]
        assert [each.schema for each in client.schemas.versions(f"{copy}.{name}")] == versions
    assert client.describe(f"{copy}.empty").subject == shared
    assert client.schemas.compatibility(f"{copy}.simple") == "FULL"
    sound(client, f"{copy}.rows", 90)
    cortado("import", copy, "backup", expect=3 + 1)
    assert "already exists" in cortado.err
    # One table of it, under another name.
    cortado("import", f"{database}.again", "backup", expect=2)
    cortado("export", f"{database}.rows", "rows/")
    cortado("import", f"{database}.again", "rows", expect=3)
    cortado("import", f"{database}.again", "rows", "--create")
    assert bodies(client, f"{database}.again") == bodies(client, rows)


def test_a_damaged_part_is_found_before_anything_is_made(cortado: CommandLine, client: Client, database: str) -> None:
    simple(client, f"{database}.simple", 1_000)
    cortado("export", database, "backup")
    part = Path("backup/simple/part-00000.avro")
    data = bytearray(part.read_bytes())
    data[-40] ^= 1
    part.write_bytes(data)
    cortado("import", f"{database}-copy", "backup", expect=2)
    assert "checksum" in cortado.err
    assert f"{database}-copy" not in client.databases()
    part.unlink()
    cortado("import", f"{database}-copy", "backup", expect=2)
    assert "No such file" in cortado.err


def test_a_part_of_a_table_by_filter_columns_and_time(cortado: CommandLine, client: Client, database: str) -> None:
    name = simple(client, f"{database}.simple", 10)
    then = str(client.now())
    client.table(name).put({"id": 100, "value": 0})
    assert (
        cortado("export", name, "--filter", "value > 49 and id < 100", "--columns", "id") == b'{"id": 8}\n{"id": 9}\n'
    )
    assert len(cortado("export", name, "--at", then).splitlines()) == 10
    cortado("export", name, "ids.avro", "--columns", "id")
    cortado("import", f"{database}.ids", "ids.avro", "--create", "--key", "id")
    assert [found.value for found in client.table(f"{database}.ids").scan(limit=1)] == [{"id": 0}]


# --- consistency ---------------------------------------------------------------------------------------------------


def test_a_database_is_exported_as_of_one_timestamp_while_it_is_written(
    cortado: CommandLine, client: Client, database: str
) -> None:
    accounts = 200
    for name in ("left", "right"):
        client.schemas.register(f"{database}.{name}", SIMPLE)
        client.create_table(f"{database}.{name}", ["id"])
        client.table(f"{database}.{name}").put_many({"id": n, "value": 100} for n in range(accounts))
    stop = threading.Event()

    def move() -> None:
        # Move from one table to the other in one commit: the sum never changes.
        held = {name: [100] * accounts for name in ("left", "right")}
        n = 0
        with Client(client.endpoint) as own:
            while not stop.is_set():
                n += 1
                source, sink = n * 7 % accounts, n * 13 % accounts
                held["left"][source] -= 1
                held["right"][sink] += 1
                with own.transaction() as txn:
                    txn.table(f"{database}.left").put({"id": source, "value": held["left"][source]})
                    txn.table(f"{database}.right").put({"id": sink, "value": held["right"][sink]})

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for number in range(3):
            cortado("export", database, f"backup{number}", "--format", "jsonl", "--part-rows", "20")
    finally:
        stop.set()
        mover.join()
    for number in range(3):
        lines = [line for part in Path(f"backup{number}").rglob("*.jsonl") for line in part.read_text().splitlines()]
        assert len(lines) == 2 * accounts
        assert sum(json.loads(line)["value"] for line in lines) == 2 * accounts * 100


# --- killed, and gone on ---------------------------------------------------------------------------------------------


def test_an_export_that_was_killed_goes_on_to_the_same_bytes(
    cortado: CommandLine, client: Client, database: str
) -> None:
    name = simple(client, f"{database}.simple", 30_000)
    arguments = ["export", name, "out/", "--part-rows", "500", "--format", "jsonl", "--quiet"]
    with cortado.stopped(*arguments, behind=3, files="part-") as process:
        process.kill()
        process.wait()
    plan = json.loads((Path("out") / CHECKPOINT).read_text())
    assert not Path("out/manifest.json").exists()
    client.table(name).put({"id": -1, "value": -1})
    cortado(*arguments, expect=2)
    assert "--resume" in cortado.err
    cortado(*arguments, "--filter", "id = 1", "--resume", expect=2)
    cortado(*arguments, "--resume")
    cortado(*arguments[:2], "whole/", *arguments[3:], "--at", plan["timestamp"])
    for path in sorted(Path("whole").rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (Path("out") / path.relative_to("whole")).read_bytes(), path
    assert {p.name for p in Path("out").rglob("*")} == {p.name for p in Path("whole").rglob("*")}


def half_an_export(cortado: CommandLine, client: Client, table: str, *, done: bool) -> dict[str, Any]:
    """Exports a table into out/, and makes of it one that is not done, with one part; ``done`` is taken for written."""
    cortado("export", table, "out/", "--format", "jsonl", "--quiet")
    manifest = json.loads(Path("out/manifest.json").read_text())
    Path("out/manifest.json").unlink()
    (file,) = manifest["tables"][0]["files"]
    part = {"path": file["path"], "lower": None, "upper": None, "rows_about": 1, "done": file if done else None}
    name = table.partition(".")[2]
    tables = [{"name": name, "table_id": client.describe(table).table_id, "schema_version": 1, "parts": [part]}]
    kept = ("database", "format", "compression", "filter", "columns", "timestamp")
    return {
        "cortado_export_checkpoint": 1,
        "cluster_id": client.status().cluster_id,
        "only": [name],
        "tables": tables,
        **{each: manifest[each] for each in kept},
    }


def test_a_crafted_checkpoint_makes_an_export_write_and_remove_nothing_elsewhere(
    cortado: CommandLine, client: Client, database: str
) -> None:
    name = simple(client, f"{database}.simple", 300)
    arguments = ["export", name, "out/", "--format", "jsonl", "--quiet"]
    plan = half_an_export(cortado, client, name, done=False)
    part = plan["tables"][0]["parts"][0]
    right = part["path"]
    mine, elsewhere = Path("mine.jsonl"), Path("elsewhere")
    elsewhere.mkdir()
    for each in (mine, elsewhere / "x.jsonl"):
        each.write_text("mine")
    (Path("out") / "link").symlink_to(elsewhere.absolute())
    for path, said in (
        ("../mine.jsonl", "must be a path below its directory"),
        (str(mine.absolute()), "must be a path below its directory"),
        ("simple/../../mine.jsonl", "must be a path below its directory"),
        ("a\0b", "must be a path below its directory"),
        ("link/x.jsonl", "is left alone"),
        (right, ""),
    ):
        part["path"] = path
        (Path("out") / CHECKPOINT).write_text(json.dumps(plan))
        cortado(*arguments, "--resume", expect=2 if said else 0)
        assert said in cortado.err, path
        assert mine.read_text() == (elsewhere / "x.jsonl").read_text() == "mine"


def test_a_part_that_is_gone_is_written_again_before_a_manifest_names_it(
    cortado: CommandLine, client: Client, database: str
) -> None:
    name = simple(client, f"{database}.simple", 300)
    plan = half_an_export(cortado, client, name, done=True)
    part = Path("out") / plan["tables"][0]["parts"][0]["path"]
    for spoil in (part.unlink, lambda: part.write_bytes(b"x")):
        (Path("out") / CHECKPOINT).write_text(json.dumps(plan))
        spoil()
        cortado("export", name, "out/", "--format", "jsonl", "--quiet", "--resume")
        assert len(part.read_text().splitlines()) == 300
        cortado("export", name, "out/", "--format", "jsonl", "--quiet", "--force")
        Path("out/manifest.json").unlink()


def test_an_import_that_was_killed_goes_on_from_its_checkpoint(
    cortado: CommandLine, client: Client, database: str
) -> None:
    name = simple(client, f"{database}.simple", 0)
    with Path("rows.jsonl").open("w") as file:
        for n in range(40_000):
            file.write('{"id": %d, "value": %s}\n' % (n, '"x"' if n % 1_000 == 17 else n))  # noqa: UP031
    # More than a thousand bad rows: then a segment has a thousand rows.
    arguments = ["import", name, "rows.jsonl", "--max-bad", "5000", "--bad-rows", "bad.jsonl", "--quiet"]
    checkpoint = Path(f"{name}.import-checkpoint")
    with cortado.stopped(*arguments, behind=3, files=checkpoint.name) as process:
        process.kill()
        process.wait()
    begun = json.loads(checkpoint.read_text())["position"]
    assert 0 < begun["row"] < 40_000
    cortado(*arguments, expect=2)
    assert "--resume goes on" in cortado.err
    [done] = cortado.json(*arguments, "--resume", expect=2)
    assert (done["written"], done["refused"]) == (40_000 - 40, 40)
    assert len(Path("bad.jsonl").read_bytes().splitlines()) == 40
    assert not checkpoint.exists()
    sound(client, name, 40_000 - 40)
    # Mended, they go in.
    Path("bad.jsonl").write_text(Path("bad.jsonl").read_text().replace('"x"', "5"))
    cortado("import", name, "bad.jsonl")
    sound(client, name, 40_000)


# --- bad rows ------------------------------------------------------------------------------------------------------


def test_bad_rows_are_named_counted_and_kept(cortado: CommandLine, client: Client, database: str) -> None:
    name = f"{database}.people"
    person = {
        "type": "record",
        "name": "P",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "of", "type": {"type": "record", "name": "I", "fields": [{"name": "name", "type": "string"}]}},
        ],
    }
    client.schemas.register(name, person)
    client.create_table(name, ["id"], indexes=[Index("u", ["of.name"], unique=True)])
    Path("people.jsonl").write_text(
        '{"id": 1, "of": {"name": "a"}}\n{"id": 2, "of": {"name": 5}}\n{"id": 3, "of": \n\n'
        '{"id": 4, "of": {"name": "a"}}\n{"id": 5, "of": {"name": "b"}}\n'
    )
    [done] = cortado.json("import", name, "people.jsonl", "--bad-rows", "bad", "--dry-run", expect=2)
    assert (done["written"], done["refused"], done["timestamp"]) == (0, 2, None)
    [done] = cortado.json("import", name, "people.jsonl", "--bad-rows", "bad", "--force", expect=2)
    assert (done["written"], done["refused"], done["bad_rows"]) == (2, 3, "bad")
    reasons = [json.loads(line) for line in Path("bad.reasons").read_text().splitlines()]
    assert [(each["row"], each["field"], each["reason"]) for each in reasons] == [
        (2, "of.name", "INVALID_DOCUMENT"),
        (3, "line", "INVALID_ARGUMENT"),
        (5, "", "UNIQUE_VIOLATION"),
    ]
    lines = Path("people.jsonl").read_text().splitlines()
    assert Path("bad").read_text().splitlines() == [lines[1], lines[2], lines[4]]
    cortado("import", name, "people.jsonl", "--max-bad", "1", "--force", expect=2)
    assert "more than 1 rows are bad" in cortado.err
    cortado("import", name, "people.jsonl", "--mode", "insert", "--force", expect=4)


def test_a_bad_row_of_parquet_or_avro_is_alone_and_is_json(cortado: CommandLine, client: Client, database: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    name = f"{database}.days"
    day = {"type": "int", "logicalType": "date"}
    fields = [{"name": "id", "type": "long"}, {"name": "day", "type": day}]
    client.schemas.register(name, {"type": "record", "name": "D", "fields": fields})
    client.create_table(name, ["id"])
    days = [0] * 500
    days[77] = 2_147_000_000
    columns = {"id": list(range(500)), "day": pyarrow.array(days, pyarrow.int32()).cast(pyarrow.date32())}
    parquet.write_table(pyarrow.table(columns), "days.parquet")
    [done] = cortado.json("import", name, "days.parquet", "--bad-rows", "bad", expect=2)
    assert (done["written"], done["refused"]) == (499, 1)
    [reason] = Path("bad.reasons").read_text().splitlines()
    assert (json.loads(reason)["row"], json.loads(reason)["field"]) == (78, "day")
    fastavro = pytest.importorskip("fastavro")
    plain = {"type": "record", "name": "topLevelRecord", "fields": [fields[0], {"name": "day", "type": "int"}]}
    with Path("days.avro").open("wb") as file:
        fastavro.writer(file, plain, [{"id": n, "day": days[n]} for n in range(500)])
    cortado("import", name, "days.avro", "--force", expect=5)
    assert "day" in cortado.err
    assert not list(Path().glob("*checkpoint*")), "of nothing done there is nothing to go on with"
    logical = {"type": "record", "name": "topLevelRecord", "fields": fields}
    with Path("days.avro").open("wb") as file:
        fastavro.writer(file, logical, [{"id": n, "day": days[n]} for n in range(500)], sync_interval=300)
    [done] = cortado.json("import", name, "days.avro", "--bad-rows", "bad", "--force", expect=2)
    assert (done["written"], done["refused"]) == (499, 1)
    assert json.loads(Path("bad").read_text()) == {"id": 77, "day": 2_147_000_000}


# --- how it ends ---------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_no_file(cortado: CommandLine, client: Client, database: str, tmp_path: Path) -> None:
    name = f"{database}.blobs"
    blob = {"type": "record", "name": "B", "fields": [{"name": "id", "type": "long"}, {"name": "b", "type": "bytes"}]}
    client.schemas.register(name, blob)
    client.create_table(name, ["id"])
    client.table(name).put_many({"id": n, "b": bytes(100_000)} for n in range(30))
    with mounted_disk(tmp_path / "small", 1) as disk:
        cortado("export", name, str(disk / "blobs.jsonl"), expect=2)
        assert "No space left" in cortado.err
        assert list(disk.iterdir()) == []
        cortado("export", name, f"{disk}/parts/", expect=2)
        assert "No space left" in cortado.err


def test_a_reader_that_goes_away_and_an_interrupt_end_it(cortado: CommandLine, client: Client, database: str) -> None:
    name = simple(client, f"{database}.simple", 30_000)
    with cortado.process("export", name) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(60) == 141
    command = ["export", name, "parts/", "--part-rows", "300", "--format", "jsonl"]
    with cortado.stopped(*command, behind=2, files="part-") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 130
    cortado("export", name, "parts/", "--part-rows", "300", "--format", "jsonl", "--resume")
    assert not list(Path("parts").rglob("*.partial"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("export", "nobody.rows"), 3, "no"),
        (("export", "nobody", "out"), 3, "no database nobody"),
        (("export", "nobody"), 2, "must be a directory for a database"),
        (("export", "kv:n", "out/"), 2, "must be a file"),
        (("export", "kv:n", "a.jsonl", "--filter", "a = 1"), 2, "tables alone"),
        (("export", "a.b", "a.jsonl", "--resume"), 2, "needs a directory"),
        (("export", "a.b", "a.jsonl", "--format", "xml"), 2, "jsonl, csv, avro, parquet"),
        (("export", "a.b", "a.jsonl", "--null", "x"), 2, "--null: is for CSV alone"),
        (("export", "a.b", "out/", "--format", "csv", "--null", "x"), 2, "--null: is for a file"),
        (("import", "a.b", "no.jsonl", "--null", "x"), 2, "--null: is for CSV alone"),
        (("import", "a.b", "no.jsonl"), 2, "No such file"),
        (("import", "a.b", "no.xml"), 2, "--format"),
        (("import", "a", "no.jsonl"), 2, "an export's directory"),
        (("import", "kv:n", "-", "--resume"), 2, "not standard input"),
        (("import", "a.b", "-", "--key", "id"), 2, "--create"),
        (("import", "a.b", "-", "--mode", "replce"), 2, "'upsert', 'insert', 'replace'"),
        (("import", "a.b", ".", "--create"), 2, "manifest.json"),
    ],
)
def test_what_cannot_work_says_so(cortado: CommandLine, arguments: tuple[str, ...], code: int, said: str) -> None:
    cortado(*arguments, expect=code)
    assert said in cortado.err
    assert list(Path().iterdir()) == []
