"""The lines of ``cortado txn apply``: the operation of each line, and refusals by its member."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.store.cli.transaction_lines import apply_operation
from cortado.store.transfer.operation_json import _PAIR_MEMBERS, _ROW_MEMBERS
from support.commands import commands


class Recorded:
    """A namespace that takes notes."""

    def __init__(self, calls: list[Any], name: str) -> None:
        self._calls = calls
        self._name = name

    def __getattr__(self, verb: str) -> Any:
        return lambda **named: self._calls.append((self._name, verb, named))


class Transaction:
    """Pairs alone."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def kv(self, namespace: str) -> Any:
        return Recorded(self.calls, namespace)

    def table(self, name: str) -> Any:
        return Recorded(self.calls, name)


def test_each_verb_of_pairs_is_asked_with_its_members() -> None:
    transaction: Any = Transaction()
    for line in (
        {"put": {"namespace": "n", "key": "a\\x00", "value": "1", "if_absent": True}},
        {"delete": {"namespace": "n", "key": "b", "if_value": "x"}},
        {"add": {"namespace": "n", "key": "c", "delta": -2, "min": 0}},
        {"require": {"namespace": "n", "key": "d", "if_etag": "0.1.2"}},
    ):
        apply_operation(transaction, line)
    assert transaction.calls == [
        ("n", "put", {"key": b"a\x00", "value": b"1", "if_absent": True}),
        ("n", "delete", {"key": b"b", "if_value": b"x"}),
        ("n", "add", {"key": b"c", "delta": -2, "min": 0}),
        ("n", "require", {"key": b"d", "if_etag": "0.1.2"}),
    ]


def test_help_and_page_name_the_operations_and_members_that_there_are() -> None:
    (help_text,) = (node.help for words, node in commands() if words == "cortado txn apply")
    assert all(re.search(rf"\b{kind}\b", help_text or "") for kind in _ROW_MEMBERS)
    page = (Path(__file__).parents[3] / "docs" / "cli" / "data.md").read_text()
    named = re.search(r"Members are those of the client's verbs:(.*?)\n\n", page, re.DOTALL)
    assert named is not None
    known = {name for members in (*_ROW_MEMBERS.values(), *_PAIR_MEMBERS.values()) for name in members}
    assert set(re.findall(r"`(\w+)`", named[1])) == known - {"document", "key", "set", "value"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (7, r"must be an object with one member: put, update, delete, add, require \(got 7\)"),
        ({}, "must be an object with one member"),
        ({"put": {}, "add": {}}, "must be an object with one member"),
        ({"upsert": {}}, "must be an object with one member"),
        ({"put": []}, "put: must be an object that names a table or a namespace"),
        ({"put": {"key": "a"}}, "put: must be an object that names a table or a namespace"),
        ({"put": {"table": "a.b", "namespace": "n"}}, "put: must be an object that names a table or a namespace"),
        ({"put": {"namespace": "n", "key": "a"}}, "put.value: must be given"),
        ({"put": {"namespace": "n", "key": 1, "value": "v"}}, r"put.key: must be text \(got 1\)"),
        ({"put": {"namespace": "n", "key": "a", "value": "v", "mode": "insert"}}, "put.mode: is not known here"),
        ({"add": {"namespace": "n", "key": "a"}}, "add.delta: must be given"),
        ({"update": {"namespace": "n", "key": "a"}}, "update: is nothing that is done to pairs"),
        ({"put": {"table": 5, "document": {}}}, r"put.table: must be text \(got 5\)"),
        ({"put": {"table": "a.b", "documents": {}}}, "put.documents: is not known here: there are document"),
    ],
)
def test_what_is_wrong_is_named_by_its_member(line: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        apply_operation(Transaction(), line)  # type: ignore[arg-type]
