"""Contents of console pages beside stored data: orders, times, differences, and the effect of an act."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cortado.errors import DeadlineExceeded
from cortado.store.client import Index
from cortado.store.client.sizes import AsyncSizes
from cortado.store.gateway.application import Application, all_operations
from cortado.store.gateway.console import rows as rows_of
from cortado.store.gateway.console.samples import Samples
from cortado.store.gateway.limits import GatewayLimits
from support.console_forms import text_of
from support.gateways import Gateway, gateway_before
from support.server_process import running_server

pytestmark = pytest.mark.process

V1: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
ROW: Final = re.compile(r'<tr class="(\w+)">\s*<th scope="row"><a href="/ui/data/pages/compared/(\d+)')
V2: Final[dict[str, Any]] = {
    **V1,
    "fields": [
        V1["fields"][0],
        {"name": "title", "aliases": ["name"], "type": "string"},
        {"name": "left", "type": "long", "default": 0},
    ],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_server(tmp_path_factory.mktemp("pages") / "data") as server, gateway_before(server.endpoint) as made:
        yield made


def get(made: Gateway, path: str, **headers: str) -> httpx.Response:
    return made.run(made.http.get(path, headers=headers))


def make_table(made: Gateway, name: str, key: Any = ("id",), **more: Any) -> str:
    client, full = made.client, f"pages.{name}"
    if "pages" not in made.run(client.databases()):
        made.run(client.create_database("pages"))
    made.run(client.schemas.register(full, V1))
    made.run(client.create_table(full, key=list(key), **more))
    return full


def test_a_cluster_without_a_change_says_never(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, gateway_before(server.endpoint) as made:
        text = text_of(get(made, "/ui"))
        assert "Last change never" in " ".join(text.split())
        assert "1970" not in text
        assert "1970" not in text_of(get(made, "/ui/data"))


def test_the_root_sends_a_browser_to_the_console_and_tells_a_registry_s_client_what_it_looks_for(made: Gateway) -> None:
    browser = get(made, "/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (browser.status_code, browser.headers["Location"]) == (302, "/ui")
    client = get(made, "/", Accept="application/vnd.schemaregistry.v1+json")
    assert (client.status_code, client.json()) == (200, {})


def test_descending_parts_of_keys_and_indexes_say_so(made: Gateway) -> None:
    make_table(made, "ordered", ["id desc"], indexes=[Index("by_name", ["name desc", "id"])])
    listed, of_one = text_of(get(made, "/ui/data")), text_of(get(made, "/ui/data/pages/ordered"))
    assert "id int64 desc" in " ".join(listed.split())
    assert "name desc, id" in " ".join(listed.split())
    assert "key id desc" in " ".join(of_one.split())


def test_only_what_differs_between_two_times_is_shown_page_by_page(
    made: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_of, "COMPARED_ROWS", 7)
    monkeypatch.setattr(rows_of, "ROWS", 10)
    full = make_table(made, "compared")
    table = made.client.table(full)
    made.run(table.put_many([{"id": each, "name": "a"} for each in range(90)]))
    at = made.run(made.client.now())
    changed = {each: {"id": each, "name": "b"} for each in range(30, 60, 2)}
    removed, added = set(range(60, 70)), set(range(100, 108))
    made.run(table.put_many([*changed.values(), *({"id": each, "name": "new"} for each in added)]))
    for each in removed:
        made.run(table.delete(each))
    found: dict[int, str] = {}
    same, path = 0, f"/ui/data/pages/compared?at={at}&compare=now"
    pages = 0
    while path:
        page = get(made, path)
        assert page.status_code == 200, page.text
        for verdict, key in re.findall(
            r'<tr class="(\w+)">\s*<th scope="row"><a href="/ui/data/pages/compared/(\d+)', page.text
        ):
            found[int(key)] = verdict
        counted = re.search(r"differ, (\d+) that do not|Nothing differs among (\d+) rows", text_of(page))
        assert counted is not None
        same += int(counted[1] or counted[2])
        further = re.search(r'href="([^"]+)">Further rows', page.text)
        path, pages = further[1].replace("&amp;", "&") if further else "", pages + 1
    assert pages > 2
    expected = dict.fromkeys(changed, "changed") | dict.fromkeys(removed, "removed") | dict.fromkeys(added, "added")
    assert found == expected
    assert same >= 90 - len(changed) - len(removed)


def test_a_table_that_was_dropped_is_shown_at_a_time_when_it_was_there(made: Gateway) -> None:
    full = make_table(made, "gone")
    made.run(made.client.table(full).put({"id": 7, "name": "a tea"}))
    at = made.run(made.client.now())
    made.run(made.client.drop_table(full))
    assert get(made, "/ui/data/pages/gone").status_code == 404
    rows = get(made, f"/ui/data/pages/gone?at={at}")
    assert rows.status_code == 200, rows.text
    assert "is no more" in text_of(rows)
    assert "a tea" in text_of(rows)
    assert 'name="act"' not in rows.text
    assert "Truncate" not in rows.text
    row = get(made, f"/ui/data/pages/gone/7?at={at}")
    assert (row.status_code, "a tea" in text_of(row)) == (200, True)
    assert get(made, "/ui/data/pages/gone/7").status_code == 404
    assert get(made, f"/ui/data/pages/never?at={at}").status_code == 404
    assert "These rows cannot be shown." in text_of(get(made, f"/ui/data/pages/gone?at={at}&compare=now"))


def test_a_page_of_another_comparison_is_refused(made: Gateway) -> None:
    full = make_table(made, "damaged")
    made.run(made.client.table(full).put({"id": 1, "name": "a"}))
    for token in ("AAAA", "_w", "AAEA"):
        page = get(made, f"/ui/data/pages/damaged?at=-1s&compare=now&page={token}")
        assert "These rows cannot be shown." in text_of(page)


def test_a_history_shows_no_field_before_it_existed(made: Gateway) -> None:
    full = make_table(made, "history")
    table = made.client.table(full)
    made.run(table.put({"id": 1, "name": "a"}))
    made.run(table.put({"id": 1, "name": "b"}))
    made.run(made.client.schemas.set_compatibility(full, "none"))
    made.run(made.client.schemas.register(full, V2))
    made.run(table.put({"id": 1, "title": "b", "left": 0}))
    page = get(made, "/ui/data/pages/history/1")
    events = re.findall(r'<li class="(\w+)">(.*?)</li>', page.text, re.DOTALL)
    fields = [(kind, re.findall(r"<dt>(\w+)</dt>", text)) for kind, text in events]
    # A renamed field is the same one.
    assert fields == [("changed", ["left"]), ("changed", ["title"]), ("written", ["id", "title"])]


def methods_of(page: httpx.Response) -> list[str]:
    return re.findall(r'<tr><th scope="row"><code>([^<]+)', page.text.partition('id="slow"')[0])


def test_calls_leave_plumbing_out_and_are_sorted_as_asked(made: Gateway) -> None:
    made.run(made.client.kv("calls").put(b"k", b"v"))
    get(made, "/ui")
    page = get(made, "/ui/calls")
    methods = methods_of(page)
    assert "KeyValue/Put" in methods
    assert not [each for each in methods if each.startswith(("Cluster/", "Statistics/", "Calls/", "Settings/"))]
    everything = methods_of(get(made, "/ui/calls?methods=all&sort=method"))
    assert everything == sorted(everything)
    assert {"Cluster/Members", *methods} <= set(everything)
    assert "sort: must be one of" in text_of(get(made, "/ui/calls?sort=colour"))
    for sort in ("calls", "failed", "rate", "p50", "p99"):
        assert 'aria-sort="descending"><a href="/ui/calls?' in get(made, f"/ui/calls?sort={sort}").text


def test_a_gateway_draws_what_it_has_watched(made: Gateway) -> None:
    samples = Samples()
    application = Application(made.client, GatewayLimits(), all_operations(samples))
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url="http://localhost:7629")
    assert "watched for too short a time" in made.run(http.get("/ui")).text
    for _ in range(2):
        made.run(samples.take(made.client))
        made.run(made.client.kv("calls").put(b"k", b"v"))
    page = made.run(http.get("/ui"))
    titles = re.findall("<figcaption>([^<]+)", page.text)
    assert titles == ["Calls per second", "Latency, p99", "Behind the leader", "Data"]
    assert "<polyline" in page.text
    assert "style=" not in page.text, "the policy of the page lets none through"
    assert re.findall("<figcaption>([^<]+)", made.run(http.get("/ui/calls")).text) == titles[:2]


def test_tables_and_databases_say_how_much_they_hold(made: Gateway) -> None:
    full = make_table(made, "sized", indexes=[Index("by_name", ["name"])])
    made.run(made.client.table(full).put_many([{"id": each, "name": "a" * 50} for each in range(1_234)]))
    listed = " ".join(text_of(get(made, "/ui/data?find=sized")).split())
    assert re.search(r"pages\.sized ~?1,\d{3} [\d.]+ KiB as the cluster never", listed), listed
    assert re.search(r"pages ~?[\d,]+ rows, [\d.]+ [KM]iB", listed), listed
    of_one = " ".join(text_of(get(made, "/ui/data/pages/sized")).split())
    assert re.search(r"Stored ~?1,\d{3} rows, [\d.]+ KiB with old versions", of_one), of_one
    assert re.search(r"Index by_name name , [\d.]+ KiB; ready", of_one), of_one


def test_a_page_is_shown_without_sizes_that_do_not_come(made: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(made, "unsized")

    async def late(*_: Any) -> Any:
        raise DeadlineExceeded(timeout_ms=2_000)

    for call in ("table", "databases"):
        monkeypatch.setattr(AsyncSizes, call, late)
    assert "pages.unsized - - as the cluster" in " ".join(text_of(get(made, "/ui/data?find=unsized")).split())
    assert "Stored" not in text_of(get(made, "/ui/data/pages/unsized"))
