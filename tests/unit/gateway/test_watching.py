"""Changes as server-sent events: in the order of the commits, from where the last one stopped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.gateways import Gateway

ITEMS = "/v1/db/shop/items"
BYTES = {"Content-Type": "application/octet-stream"}


def events(served: Gateway, path: str, **options: Any) -> list[tuple[str, str, Any]]:
    """Return event, id and data of a watch that ends."""
    answered = served.request("GET", path, **options)
    assert answered.status_code == 200, answered.text
    assert answered.headers["Content-Type"].startswith("text/event-stream")
    found = []
    for text in answered.text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in text.split("\n"))
        found.append((fields["event"], fields.get("id", ""), json.loads(fields["data"])))
    return found


def put(served: Gateway, path: str, **body: Any) -> str:
    stored = served.request("PUT", path, json=body)
    etag: str = stored.json()["etag"]
    return etag


def test_changes_come_in_order_and_the_last_id_resumes(served: Gateway) -> None:
    before = put(served, f"{ITEMS}/w0", id="w0")
    first = put(served, f"{ITEMS}/w1", id="w1", left=1)
    second = put(served, f"{ITEMS}/w1", id="w1", left=2)
    served.request("DELETE", f"{ITEMS}/w1")
    end = put(served, f"{ITEMS}/w2", id="w2")
    found = events(served, f"{ITEMS}:watch", params={"after": before, "until": end, "withPrevious": "true"})
    changes = [each for each in found if each[0] != "resolved"]
    assert [(kind, data["timestamp"], data["key"]) for kind, _, data in changes] == [
        ("put", first, ["w1"]),
        ("put", second, ["w1"]),
        ("delete", changes[2][2]["timestamp"], ["w1"]),
        ("put", end, ["w2"]),
    ]
    assert changes[1][2]["previous"]["left"] == 1
    assert all(bool(id) == (kind == "resolved") for kind, id, _ in found)
    assert found[-1][:2] == ("resolved", end)
    resumed = events(served, f"{ITEMS}:watch", params={"until": end}, headers={"Last-Event-ID": second})
    assert [kind for kind, _, _ in resumed if kind != "resolved"] == ["delete", "put"]


def test_a_reconnect_does_not_send_the_state_again(served: Gateway) -> None:
    """As a browser's EventSource reconnects: the same URL, and the last id that it was sent."""
    path = "/v1/kv/reconnected:watch"
    for key in ("a", "b"):
        first = served.request("PUT", f"/v1/kv/reconnected/{key}", content=b"1", headers=BYTES).json()["etag"]
    asked = {"initialState": "true", "until": first}
    state = events(served, path, params=asked)
    assert [(kind, data.get("key")) for kind, _, data in state if kind != "resolved"] == [("put", "a"), ("put", "b")]
    ids = [id for _, id, _ in state if id]
    assert state[-1][1] == ids[-1], "an id is sent once the state is whole"
    end = served.request("PUT", "/v1/kv/reconnected/c", content=b"1", headers=BYTES).json()["etag"]
    asked = {"initialState": "true", "until": end}
    resumed = events(served, path, params=asked, headers={"Last-Event-ID": ids[-1]})
    assert [(kind, data.get("key")) for kind, _, data in resumed if kind != "resolved"] == [("put", "c")]


def test_a_prefix_is_watched_of_documents_and_of_pairs(served: Gateway) -> None:
    begin = put(served, "/v1/db/shop/events/900/2013-01-01T00:00:00Z", device=900, at="2013-01-01T00:00:00Z")
    put(served, "/v1/db/shop/events/901/2013-01-01T00:00:00Z", device=901, at="2013-01-01T00:00:00Z")
    for key in ("user/1", "user/2", "other"):
        served.request("PUT", f"/v1/kv/watched/{key}", content=b"\xff", headers=BYTES)
    end = put(served, "/v1/db/shop/events/901/2013-01-02T00:00:00Z", device=901, at="2013-01-02T00:00:00Z")
    limits = {"after": begin, "until": end}
    of_device = events(served, "/v1/db/shop/events/901:watch", params=limits)
    assert [data["document"]["device"] for kind, _, data in of_device if kind == "put"] == [901, 901]
    of_users = events(served, "/v1/kv/watched:watch", params={**limits, "prefix": "user/"})
    assert [(data["key"], data["value"]) for kind, _, data in of_users if kind == "put"] == [
        ("user/1", r"\xff"),
        ("user/2", r"\xff"),
    ]


@pytest.mark.parametrize(
    ("path", "options", "status", "field"),
    [
        (f"{ITEMS}:watch?after=yesterday", {}, 400, "after"),
        (f"{ITEMS}:watch?resolved=1", {}, 400, "'resolved'"),
        (f"{ITEMS}:watch", {"headers": {"Last-Event-ID": "7"}}, 400, "Last-Event-ID"),
        (f"{ITEMS}:watch", {"headers": {"Last-Event-ID": "0.99999999999999.0"}}, 400, "Last-Event-ID"),
        (f"{ITEMS}:watch", {"headers": {"Accept": "application/json"}}, 406, "Accept"),
        (f"{ITEMS}:watch?after=2100-01-01T00:00:00Z", {}, 400, "after"),
        ("/v1/db/shop/nothing:watch", {}, 404, None),
        ("/v1/db/shop/items/a/b:watch", {}, 400, "key"),
    ],
)
def test_a_wrong_watch_is_refused_before_it_begins(
    served: Gateway, path: str, options: dict[str, Any], status: int, field: str | None
) -> None:
    refused = served.request("GET", path, **options)
    assert (refused.status_code, refused.json().get("field")) == (status, field), refused.text
    assert refused.headers["Content-Type"] == "application/problem+json"
