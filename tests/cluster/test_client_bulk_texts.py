"""Rows of texts, such as those of Python's DictReader, through the client, against a real server."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.store.client import Client, Table
from support.faces import FACES, open_client
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "count", "type": ["null", "long"], "default": None},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
]


@dataclass
class Row:
    id: str


@pytest.fixture(params=FACES)
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=10) as opened:
        yield opened


@pytest.fixture
def rows(client: Client, database: str) -> Table:
    client.schemas.register(f"{database}.rows", {"type": "record", "name": "Row", "fields": FIELDS})
    client.create_table(f"{database}.rows", ["id"])
    return client.table(f"{database}.rows")


def test_rows_of_a_dict_reader_are_read_by_the_types_of_their_fields(rows: Table) -> None:
    text = 'id,count,at,tags\na,5,2013-01-01 00:00Z,"[""x""]"\n"",,,[]\n'
    result = rows.put_many(csv.DictReader(io.StringIO(text)), parse=True)
    assert (result.written, result.refused) == (2, 0)
    assert [document.value for document in rows.scan()] == [
        {"id": "", "count": None, "at": None, "tags": []},
        {"id": "a", "count": 5, "at": datetime(2013, 1, 1, tzinfo=UTC), "tags": ["x"]},
    ]


def test_a_text_that_does_not_fit_is_one_bad_row_with_its_field_type_and_value(rows: Table) -> None:
    text = "id,count,at\na,x,\nb,1\nc,,,9\nd,,2018-02-14T00:28:07+01:60\n"
    result = rows.put_many(csv.DictReader(io.StringIO(text)), parse=True)
    assert [document.value["id"] for document in rows.scan()] == ["b"]
    assert [(each.row, str(each.error)) for each in result.errors] == [
        (0, "count: must fit the type long, such as 12 (got 'x')"),
        (2, "has more cells than the header"),
        (
            3,
            "at: must fit the type long (timestamp-micros), such as 2013-01-31T23:59:59.5Z: hours must be 00 to 23, "
            "minutes and seconds 00 to 59, in an offset too (got '2018-02-14T00:28:07+01:60')",
        ),
    ]


def test_values_that_are_no_texts_stay_as_they_are(rows: Table) -> None:
    assert rows.put_many([{"id": "a", "count": 5, "tags": ["x"]}, {"id": "b", "count": "6"}], parse=True).written == 2
    assert [document.value["count"] for document in rows.scan()] == [5, 6]
    assert rows.put_many([{"id": "a", "count": "5"}]).refused == 1, "texts are parsed only where that is asked for"


def test_texts_are_not_parsed_for_a_document_type(client: Client, rows: Table) -> None:
    with pytest.raises(InvalidArgument, match="parse: is for rows of texts"):
        client.table(rows.full_name, document_type=Row).put_many([Row("a")], parse=True)
    with pytest.raises(InvalidArgument, match="parse"):
        rows.put_many([{"id": "a"}], parse="yes")  # type: ignore[call-overload]
