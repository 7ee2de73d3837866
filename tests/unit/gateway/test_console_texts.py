"""Values as the console prepares them for a page: text that a reader sees whole, and values that need attention."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from cortado.errors import PermissionDenied, Unavailable
from cortado.store.client.cluster import MemberStatus
from cortado.store.doctor.verdicts import Verdict
from cortado.store.gateway.console import texts
from cortado.store.gateway.console.cluster import Node, findings
from cortado.store.gateway.console.pairs import Form, shown_as
from cortado.store.gateway.console.rows import Row

DENSE = b", ".join([b"1"] * 5_000)
"""On lines of their own, 200 arrays deep, these would be two million characters."""


@pytest.mark.parametrize("given", ["tea", "a/b", "...", "", "%2F", "ü\u202e", "?x=1#y", "a b", "\\N"])
def test_each_row_s_link_leads_to_it(given: str) -> None:
    path = Row((given, "7"), {}).path
    assert path is not None
    assert not re.search(r"[?# \u202e]", path)
    parts = path.split("/")
    assert len(parts) == 2
    assert parts[0] not in (".", "..")
    assert httpx.URL(f"http://x/{parts[0]}").path == f"/{given}" or given == ""


@pytest.mark.parametrize("given", [".", ".."])
def test_a_row_has_no_link_that_a_browser_would_change(given: str) -> None:
    assert Row((given, "7"), {}).path is None


def test_text_is_shown_as_it_is_but_for_what_does_not_print() -> None:
    assert texts.plain("שלום, <b> ü\n") == "שלום, <b> ü\n"
    assert texts.plain("\U000e0041\x1b[2J") == "\\U000e0041\\u001b[2J"
    assert texts.cell({"a": ["\u2028", 1]}) == '{"a": ["\\u2028", 1]}'
    assert [texts.seconds(each) for each in (None, 0, 0.000_5, 0.0123, 2)] == ["-", "0 s", "500 µs", "12.3 ms", "2 s"]


def test_what_a_visitor_may_not_know_is_nothing_that_is_wrong() -> None:
    member = MemberStatus("n1", "127.0.0.1:2", "127.0.0.1:3", voter=True, joined=True)
    denied = PermissionDenied("nobody", "operator", "cluster")
    node = Node(member, is_leader=True, said=denied, offset="-", facts={"problem": denied.message()})
    assert (node.state, node.serves) == ("not shown", False)
    assert findings([node]) == []


def test_a_node_that_says_nothing_is_what_the_doctor_says_of_it() -> None:
    away = MemberStatus("n2", "127.0.0.1:2", "127.0.0.1:3", voter=True, joined=True)
    new = MemberStatus("n3", "", "127.0.0.1:4", voter=False, joined=False)
    silent = Unavailable("nothing listens")
    nodes = [Node(each, False, silent, "-", {"problem": silent.message()}) for each in (away, new)]
    [found] = findings(nodes)
    assert (found.verdict, found.found) == (Verdict.FAIL, f"0 of 1; 127.0.0.1:2: {silent.message()}")


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (b'{"a": [1]}', "auto", ("json", '{\n  "a": [\n    1\n  ]\n}')),
        (b'{"a": [1]}', "text", ("text", '{"a": [1]}')),
        (b"7", "auto", ("text", "7")),
        (b"7", "json", ("json", "7")),
        (b"{", "json", ("text", "{")),
        (b"[1e999]", "json", ("text", "[1e999]")),
        (b"[" * 5_000 + b"]" * 5_000, "auto", ("text", "[" * 5_000 + "]" * 5_000)),
        (b"[" * 200 + DENSE + b"]" * 200, "json", ("json", "[" * 200 + DENSE.decode() + "]" * 200)),
        (b"\x00\xff", "auto", ("hex", "00 ff")),
        (b"\x00\xff", "text", ("text", "\\x00\\xff")),
        (b"ab", "hex", ("hex", "61 62")),
        ("ü".encode(), "auto", ("text", "ü")),
        (b"", "auto", ("text", "")),
    ],
)
def test_a_value_is_shown_as_what_it_looks_like_or_as_was_asked(value: bytes, form: Form, shown: Any) -> None:
    found = shown_as(value, form, 20_000, indent=2)
    assert (found.form, found.text, found.left_out) == (*shown, 0)


def test_text_that_is_cut_within_a_character_is_still_text() -> None:
    found = shown_as("ü".encode() * 10, "auto", 5)
    assert (found.form, found.left_out) == ("text", 15)
    assert shown_as(b"\xff" * 10, "auto", 5).form == "hex"
