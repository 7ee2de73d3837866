"""Options are checked before any message is sent, and errors are named. No JVM here."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument
from cortado.store.client import Tls
from cortado.store.keys.types import KeyPart, KeyType
from pyspark_cortado.catalogue import is_new_table, keeping, options_of_new_table, options_to_read
from pyspark_cortado.keys import key_part
from pyspark_cortado.leases import Chosen
from pyspark_cortado.options import changes_options, read_options, stream_options, write_options
from pyspark_cortado.reader import TableReader, table_schema

TOKEN = "ctd_0123456789abcdef_" + "A" * 43


@pytest.mark.parametrize("parse", [read_options, write_options])
def test_without_an_endpoint_the_command_lines_variables_count(parse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTADO_ENDPOINTS", "db1:7621,db2:7621")
    monkeypatch.setenv("CORTADO_TOKEN", TOKEN)
    found = parse({"table": "a.b"}).connection
    assert (found.endpoint, found.token) == ("db1:7621,db2:7621", TOKEN)
    elsewhere = parse({"table": "a.b", "endpoint": "c:1"}).connection
    assert (elsewhere.endpoint, elsewhere.token) == ("c:1", None)


def test_a_table_is_all_that_a_read_needs() -> None:
    options = read_options({"table": "nyc.flights"})
    assert options.connection.endpoint == "127.0.0.1:7621"
    assert options.connection.timeout_s == 30
    assert (options.at, options.columns, options.key_start, options.key_end) == (None, None, None, None)
    assert (options.partitions, options.schema_version) == (None, None)
    assert (options.hold, options.reads_anywhere) == (True, False)
    options = read_options({"table": "nyc.flights", "hold": "false", "replicaRead": "nearest"})
    assert (options.hold, options.reads_anywhere) == (False, True)


def test_names_of_other_sources_are_taken_and_not_beside_their_own() -> None:
    options = read_options({"table": "a.b", "timestampasof": "0.1763643600000.2", "numPartitions": "7"})
    assert (options.at, options.partitions) == ("0.1763643600000.2", 7)
    written = write_options({"table": "a.b", "batchsize": "50", "badRecordsPath": "/tmp/bad", "numPartitions": "7"})
    assert (written.chunk_rows, written.bad_rows_path) == (50, "/tmp/bad")
    for first, second in (("partitions", "numPartitions"), ("numPartitions", "partitions")):
        with pytest.raises(InvalidArgument, match="option numPartitions: must not be given beside partitions"):
            read_options({"table": "a.b", first: "4", second: "7"})


@pytest.mark.parametrize(
    ("parse", "more", "name", "value"),
    [
        (read_options, {}, "numPartitions", "0"),
        (read_options, {}, "NUMPARTITIONS", "0"),
        (read_options, {}, "timestampAsOf", "2026-01-31"),
        (write_options, {}, "batchsize", "0"),
        (write_options, {}, "badRecordsPath", ""),
        (stream_options, {"checkpointLocation": "c"}, "batchsize", "0"),
        (changes_options, {"startingAt": "latest"}, "numPartitions", "0"),
    ],
)
def test_an_error_names_the_option_that_was_given(parse: Any, more: dict[str, str], name: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse({"endpoint": "a:1", "table": "a.b", **more, name: value})
    assert refused.value.field == f"option {name}"


def test_a_table_is_all_that_a_write_needs() -> None:
    options = write_options({"table": "nyc.flights"})
    assert (options.operation, options.refuse_conflicts, options.chunk_rows) == ("upsert", True, 2000)


def test_a_transactional_write_may_name_who_writes_and_the_number_of_the_job() -> None:
    options = write_options({"table": "a.b"})
    assert (options.transactional, options.application, options.version) == (False, "", 0)
    given = {"table": "a.b", "transactional": "true", "txnappid": "nightly", "TXNVERSION": "0"}
    options = write_options(given)
    assert (options.transactional, options.application, options.version) == (True, "nightly", 0)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"transactional": "yes"}, "transactional"),
        ({"txnAppId": "a", "txnVersion": "1"}, "txnAppId"),
        ({"transactional": "false", "txnVersion": "1"}, "txnVersion"),
        ({"transactional": "true", "txnAppId": "a"}, "txnVersion"),
        ({"transactional": "true", "txnVersion": "1"}, "txnAppId"),
        ({"transactional": "true", "txnAppId": "", "txnVersion": "1"}, "txnAppId"),
        ({"transactional": "true", "txnAppId": "x" * 201, "txnVersion": "1"}, "txnAppId"),
        ({"transactional": "true", "txnAppId": "a", "txnVersion": "-1"}, "txnVersion"),
        ({"transactional": "true", "txnAppId": "a", "txnVersion": str(1 << 63)}, "txnVersion"),
        ({"transactional": "true", "txnAppId": "a", "txnVersion": "1.5"}, "txnVersion"),
    ],
)
def test_what_is_wrong_with_a_transactional_write_is_named(given: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        write_options({"table": "a.b", **given})
    assert refused.value.field == f"option {field}"


def test_names_of_options_are_known_in_any_case() -> None:
    options = read_options({"TABLE": "a.b", "keystart": "[1]", "KeyEnd": "[2]", "schemaversion": "3"})
    assert (options.key_start, options.key_end, options.schema_version) == ((1,), (2,), 3)


def test_the_files_of_certificates_are_the_clients() -> None:
    authority = {"table": "a.b", "endpoint": "h1:1,h2:2", "tlsCa": "ca.crt"}
    assert read_options({"table": "a.b"}).connection.tls is None
    assert read_options(authority).connection.tls == Tls("ca.crt")
    own = {**authority, "TLSCERT": "me.crt", "tlsKey": "me.key"}
    assert write_options(own).connection.tls == Tls("ca.crt", "me.crt", "me.key")


def test_a_token_is_the_clients_and_is_never_shown(tmp_path: Path) -> None:
    token = TOKEN
    of_text = read_options({"table": "a.b", "TOKEN": token})
    assert of_text.connection.token == token
    assert token not in repr(of_text)
    file = tmp_path / "app.token"
    with pytest.raises(InvalidArgument, match="option tokenFile: cannot be read: No such file"):
        write_options({"table": "a.b", "tokenFile": str(file)})
    file.write_text(token)
    assert write_options({"table": "a.b", "tokenFile": str(file)}).connection.token == file
    for given in ({"token": token[:-1]}, {"token": token, "tokenFile": str(file)}):
        with pytest.raises(InvalidArgument) as refused:
            read_options({"table": "a.b", **given})
        assert token[:-1] not in refused.value.message()
    with pytest.raises(InvalidArgument, match="give tokenFile"):
        options_of_new_table({"option.table": "a.b", "option.Token": token})


@pytest.mark.parametrize(
    ("given", "field", "with_option"),
    [
        (("tlsCert", "tlsKey"), "tlsCa", "tlsCert"),
        (("tlsKey",), "tlsCa", "tlsKey"),
        (("tlsCa", "tlsCert"), "tlsKey", "tlsCert"),
        (("tlsCa", "tlsKey"), "tlsCert", "tlsKey"),
    ],
)
def test_files_of_certificates_that_need_each_other_are_named(
    given: tuple[str, ...], field: str, with_option: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_options({"table": "a.b", **dict.fromkeys(given, "x.pem")})
    assert refused.value.field == f"option {field}"
    assert refused.value.problem == f"must be given with {with_option}"


def test_a_file_of_certificates_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "ca.crt"
    with pytest.raises(InvalidArgument) as refused:
        table_schema(read_options({"table": "a.b", "tlsCa": str(missing)}))
    assert (refused.value.field, refused.value.value) == ("option tlsCa", str(missing))


def test_what_goes_to_the_executors_names_every_endpoint_and_the_files() -> None:
    options = read_options(
        {"table": "a.b", "endpoint": "h1:1,h2:2", "tlsCa": "ca.crt", "tlsCert": "me.crt", "tlsKey": "me.key"}
    )
    there = pickle.loads(pickle.dumps(TableReader(options, StructType(), (), Chosen("0.1.0", 1, None))))
    assert there._options == options
    assert there._options.connection.endpoint == "h1:1,h2:2"
    assert there._options.connection.tls == Tls("ca.crt", "me.crt", "me.key")


def test_columns_are_trimmed_and_keep_their_order() -> None:
    assert read_options({"table": "a.b", "columns": "b, a"}).columns == ("b", "a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("table", ""),
        ("table", "flights"),
        ("table", "a.b.c"),
        ("table", ".b"),
        ("timeoutSeconds", "soon"),
        ("timeoutSeconds", "0"),
        ("timeoutSeconds", "nan"),
        ("timeoutSeconds", "1e9"),
        ("columns", ""),
        ("columns", "a,,b"),
        ("columns", "a,a"),
        ("keyStart", "1"),
        ("keyStart", "[]"),
        ("keyStart", '["unclosed'),
        ("keyEnd", "{}"),
        ("keyEnd", "[" * 100_000),
        ("partitions", "0"),
        ("partitions", "4097"),
        ("partitions", "many"),
        ("schemaVersion", "0"),
        ("endpoitn", "localhost:1"),
        ("tls_ca", "ca.crt"),
        ("paths", '["a.b"]'),
    ],
)
def test_a_bad_option_of_a_read_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_options({"table": "a.b", name: value})
    assert refused.value.field == f"option {name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("operation", "append"),
        ("onConflict", "ignore"),
        ("chunkRows", "0"),
        ("chunkRows", "10001"),
        ("att", "0.1.2"),
        ("badRowsPath", ""),
    ],
)
def test_a_bad_option_of_a_write_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        write_options({"table": "a.b", name: value})
    assert refused.value.field == f"option {name}"


@pytest.mark.parametrize(("name", "value"), [("transactional", "true"), ("onConflict", "overwrite")])
def test_bad_rows_are_kept_where_a_job_may_lack_them_and_knows_its_own(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match="option badRowsPath"):
        write_options({"table": "a.b", "badRowsPath": "/tmp/bad", name: value})
    assert write_options({"table": "a.b", "badRowsPath": "/tmp/bad"}).bad_rows_path == "/tmp/bad"


def test_chunks_of_an_update_are_smaller_unless_it_is_said() -> None:
    assert write_options({"table": "a.b", "operation": "update"}).chunk_rows == 1000
    assert write_options({"table": "a.b", "operation": "update", "chunkRows": "3000"}).chunk_rows == 3000


def test_a_table_may_be_what_load_and_save_are_given() -> None:
    assert read_options({"path": "a.b"}).connection.table == "a.b"
    assert write_options({"path": "a.b", "table": "a.b"}).connection.table == "a.b"
    with pytest.raises(
        InvalidArgument, match=r"option table: is not what load\(\) or save\(\) is given, x.y \(got a.b\)"
    ):
        read_options({"table": "a.b", "path": "x.y"})
    with pytest.raises(InvalidArgument, match="option table: is required"):
        read_options({"path": "file:/tmp/x"})


def test_a_view_is_read_and_inserted_into_with_one_set_of_options() -> None:
    both = {"table": "a.b", "partitions": "2", "columns": "a", "at": "0.1.2", "operation": "insert", "chunkRows": "9"}
    assert read_options(both).partitions == 2
    assert write_options(both).chunk_rows == 9


def test_a_table_is_asked_for_where_sparks_catalogue_has_no_options() -> None:
    for options in (read_options, write_options):
        with pytest.raises(InvalidArgument, match=r"option table: is required.* A write needs WITH \(table = ...\)\)"):
            options({})


def test_a_new_table_of_sparks_catalogue_has_its_options_and_nothing_of_sparks() -> None:
    made = {"provider": "cortado", "option.table": "a.b", "table": "a.b", "owner": "root", "comment": "x"}
    assert is_new_table(made)
    assert options_of_new_table(made) == {"table": "a.b"}
    with pytest.raises(InvalidArgument, match="LOCATION: must not be given"):
        options_of_new_table({**made, "location": "/tmp/x"})


def test_what_is_kept_with_the_columns_is_read_with_and_what_the_query_says_goes_before() -> None:
    schema = keeping(StructType().add("id", "long", False).add("s", "string"), {"table": "a.b", "at": "0.1.0"})
    assert (schema["id"].nullable, schema["s"].nullable) == (False, True)
    assert options_to_read({}, schema) == {"table": "a.b", "at": "0.1.0"}
    assert options_to_read({"at": "0.2.0"}, StructType([schema["s"]])) == {"table": "a.b", "at": "0.2.0"}
    assert options_to_read({"table": "c.d"}, schema) == {"table": "c.d"}
    assert options_to_read({"limit": "3"}, StructType().add("id", "long")) == {"limit": "3"}


@pytest.mark.parametrize(
    ("kind", "json_value", "expected"),
    [
        (KeyType.INT64, 5, 5),
        (KeyType.FLOAT64, 5, 5.0),
        (KeyType.FLOAT64, 0.5, 0.5),
        (KeyType.BOOL, True, True),
        (KeyType.STRING, "5", "5"),
        (KeyType.TIMESTAMP, "2013-01-01T00:00:00Z", datetime(2013, 1, 1, tzinfo=UTC)),
        (KeyType.DATE, "2013-01-01", date(2013, 1, 1)),
        (KeyType.DECIMAL, "1.50", Decimal("1.50")),
        (KeyType.DECIMAL, 2, Decimal(2)),
        (KeyType.UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        (KeyType.BYTES, "00ff", b"\x00\xff"),
    ],
)
def test_parts_of_a_bound_take_the_types_of_the_key(kind: KeyType, json_value: Any, expected: Any) -> None:
    part = key_part(json_value, KeyPart("a", kind), "option keyStart")
    assert part == expected
    assert type(part) is type(expected)


@pytest.mark.parametrize(
    ("kind", "json_value"),
    [
        (KeyType.INT64, "5"),
        (KeyType.INT64, 5.5),
        (KeyType.INT64, True),
        (KeyType.FLOAT64, "5"),
        (KeyType.BOOL, 1),
        (KeyType.STRING, 5),
        (KeyType.TIMESTAMP, "2013-01-01T00:00:00"),
        (KeyType.TIMESTAMP, 5),
        (KeyType.DATE, "yesterday"),
        (KeyType.DECIMAL, 1.5),
        (KeyType.DECIMAL, "x"),
        (KeyType.UUID, "x"),
        (KeyType.BYTES, "xy"),
        (KeyType.STRING, None),
        (KeyType.STRING, ["x"]),
    ],
)
def test_a_part_of_another_type_is_refused_by_option_and_part(kind: KeyType, json_value: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        key_part(json_value, KeyPart("a", kind), "option keyStart")
    assert refused.value.field == "option keyStart, part a"
    assert str(kind) in refused.value.problem


def test_a_session_that_does_not_use_cortado_imports_nothing_of_it() -> None:
    code = (
        "import sys, pyspark_cortado; "
        "heavy = {'grpc', 'pyarrow', 'numpy', 'fastavro', 'pandas'} & set(sys.modules); "
        "own = [name for name in sys.modules if name.startswith('cortado')]; "
        "sys.exit(f'{heavy} {own}' if heavy or own else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("missing", "code", "what"),
    [
        ("sqlglot", "from pyspark_cortado import sql; sql(None, 'SELECT 1')", "sql()"),
        ("pyarrow", "from pyspark_cortado.types import spark_schema; spark_schema(None, None, 'a.b')", "Spark"),
    ],
)
def test_an_installation_without_the_extra_names_it(missing: str, code: str, what: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; {code}"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    command = "pip install 'cortadodb[spark]'"
    error = f"cortado.errors.Unsupported: {what} without the extra [spark] is not supported: {command}"
    assert shown.stderr.splitlines()[-1] == error
