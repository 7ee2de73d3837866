"""Objects as notebooks show them: escaped, bounded, waited for shortly, and without a read of a transaction."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from itertools import count
from typing import Any

import pytest

from cortado.errors import DeadlineExceeded, InvalidDocument
from cortado.store.client import AsyncClient, BulkResult, Client, Index, table_reads
from cortado.store.client.notebook import CHARACTERS_MAX, COLUMNS_MAX, LINES_MAX, ROWS_MAX, WAIT_S, grid
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"], "default": None},
]
ROW = {"type": "record", "name": "Row", "fields": FIELDS}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_node(MemoryEngine()) as node:
        with Client(node.endpoint) as client:
            client.create_database("d")
            client.schemas.register("d.t", ROW)
            client.create_table("d.t", ["id desc"], indexes=[Index("by_name", ["name"])])
        yield node


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.endpoint) as opened:
        opened.table("d.t").delete_many(range(100))
        yield opened


class Read(HTMLParser):
    """The cells of a page, line by line, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[list[str]] = []
        self.tags: set[str] = set()
        self.text = ""
        self._is_in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("")
            self._is_in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._is_in_cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._is_in_cell:
            self.lines[-1][-1] += data


def shown(value: Any) -> Read:
    page = value._repr_html_()
    assert page is not None
    return Read(page)


def test_a_table_shows_its_key_its_indexes_and_its_first_rows(client: Client) -> None:
    table = client.table("d.t")
    table.put_many({"id": number, "name": f"n{number}"} for number in range(ROWS_MAX))
    page = shown(table)
    names = [[str(number), f"n{number}"] for number in reversed(range(ROWS_MAX))]
    assert page.lines == [["id", "name"], *names]
    assert page.text.startswith("d.t")
    assert page.text.endswith("all of its rows; key (id desc); index by_name (name)")
    table.put({"id": 99, "name": None})
    page = shown(table)
    assert page.lines[1] == ["99", "None"]
    assert len(page.lines) == 1 + ROWS_MAX
    assert "the first 10 rows, more may follow; key" in page.text


def test_a_table_without_rows_and_one_that_is_not_there_say_so(client: Client) -> None:
    page = shown(client.table("d.t"))
    assert "no rows; key" in page.text
    page = shown(client.table("d.absent"))
    assert page.lines == []
    assert "NotFound" in page.text


def test_what_was_dropped_since_is_not_shown(served: Served, client: Client) -> None:
    client.create_table("d.gone", ["id"], subject="d.t")
    table = client.table("d.gone")
    table.put({"id": 1})
    with Client(served.endpoint) as other:
        other.drop_table("d.gone")
    assert "NotFound" in shown(table).text


def test_a_table_of_the_past_shows_the_rows_of_then(client: Client) -> None:
    client.table("d.t").put({"id": 1, "name": "before"})
    then = client.now()
    client.table("d.t").put({"id": 1, "name": "after"})
    assert shown(client.at(then).table("d.t")).lines[1] == ["1", "before"]


def test_a_table_of_a_transaction_is_not_read_to_be_shown(client: Client) -> None:
    with client.transaction(isolation="serializable") as txn:
        table = txn.table("d.t")
        assert table._repr_html_() is None
        client.table("d.t").put({"id": 1, "name": "meanwhile"})
        # The transaction begins with its own first read.
        assert table.get(1) is not None


def test_an_asyncio_table_is_shown_by_its_name() -> None:
    assert not hasattr(AsyncClient("127.0.0.1:1").table("d.t"), "_repr_html_")


def test_a_node_that_does_not_answer_is_waited_for_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def never(connection: Any, method: Any, request: Any, *, timeout_s: float) -> Any:
        waited.append(timeout_s)
        raise DeadlineExceeded(problem="no answer within the deadline")

    monkeypatch.setattr(table_reads.Connection, "call", never)
    with Client("127.0.0.1:1", timeout_s=600) as client:
        assert "DeadlineExceeded: " in shown(client.table("d.t")).text
    with Client("127.0.0.1:1", timeout_s=0.5) as client:
        assert "DeadlineExceeded: " in shown(client.table("d.t")).text
    assert waited == [WAIT_S, 0.5]


def test_a_range_in_which_nothing_is_left_is_read_for_so_long_and_no_longer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count()

    async def replies(table: Any, request: Any) -> AsyncIterator[tuple[list[Any], bytes]]:
        while True:
            yield [], b"token"

    table = client.table("d.t")
    connection = table._core._connection
    monkeypatch.setattr(table_reads.TableReads, "_replies", replies)
    monkeypatch.setattr(connection, "environment", replace(connection.environment, monotonic_s=seconds.__next__))
    assert "the first 0 rows, more may follow; key" in shown(table).text
    assert next(seconds) == WAIT_S + 1


def test_a_document_shows_its_fields_and_its_etag(client: Client) -> None:
    etag = client.table("d.t").put({"id": 1, "name": "<b>&amp;"})
    document = client.table("d.t").get(1)
    page = shown(document)
    assert page.lines == [["field", "value"], ["id", "1"], ["name", "<b>&amp;"]]
    assert etag in page.text
    assert "b" not in page.tags


def test_a_bulk_load_shows_what_was_refused() -> None:
    result = BulkResult(written=7)
    assert shown(result).lines == []
    for row in range(1_000):
        result._refuse(row, InvalidDocument("name", "must be a str", "<int>"))
    page = shown(result)
    assert page.text.startswith("7 rows written, 1000 refused")
    assert page.lines[1][:2] == ["0", "InvalidDocument"]
    assert len(page.lines) == 1 + LINES_MAX


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("a\nb", "'a\\nb'"),
        ("\u202eabc", "'\\u202eabc'"),
        ("\ud800", "'\\ud800'"),
        ("</td><script>alert(1)</script>", "</td><script>alert(1)</script>"),
        (b"\x00<", "b'\\x00<'"),
        (datetime(2020, 1, 2, 3, tzinfo=UTC), "2020-01-02 03:00:00+00:00"),
        (Decimal("1.50"), "1.50"),
        (None, "None"),
        ({"a": [1, "<x>"]}, "{'a': [1, '<x>']}"),
        ("é", "é"),
    ],
)
def test_a_value_is_shown_as_text_whatever_it_is(value: Any, text: str) -> None:
    page = grid("t", ["a"], [[value]])
    page.encode()
    read = Read(page)
    assert read.lines == [["a"], [text]]
    assert read.tags <= {"div", "strong", "table", "tr", "th", "td", "em"}


@pytest.mark.parametrize(
    "value", ["<" * 10**6, b"\x00" * 10**6, ["&" * 10**4] * 10**4, {"a": [[["x"] * 9] * 9] * 9}, 7]
)
def test_a_page_is_bounded_whatever_is_stored(value: Any) -> None:
    most = max(LINES_MAX, COLUMNS_MAX)
    row = [value, *[None] * (most + 1)]
    read = Read(grid("<" * 10**6, [f"c{i}" for i in range(most + 2)], [row] * (most + 3), "&" * 10**6))
    assert len(read.lines) == 1 + LINES_MAX
    assert {len(line) for line in read.lines} == {COLUMNS_MAX}
    assert max(len(cell) for line in read.lines for cell in line) <= CHARACTERS_MAX + 1
    assert "3 more lines are not shown" in read.text
    assert "2 more columns are not shown" in read.text


def test_a_page_has_no_colours_and_asks_for_nothing() -> None:
    page = grid("t", ["a"], [["x"]], "n")
    assert not re.search(r"color|background|src|href|http|script", page)
