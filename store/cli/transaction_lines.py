"""The operations of ``cortado txn apply``: an object a line, whose one member says what is done, and where::

    {"put": {"table": "shop.items", "document": {"id": "tea", "left": 9}, "mode": "insert"}}
    {"update": {"table": "shop.items", "key": ["tea"], "set": {"left": 8}, "if_match": "0.1763643600000.2"}}
    {"delete": {"table": "shop.items", "key": ["milk"]}}
    {"add": {"table": "shop.items", "key": ["tea"], "field": "left", "delta": -1, "min": 0}}
    {"check": {"table": "shop.items", "key": ["tea"], "if_present": true}}
    {"put": {"namespace": "log", "key": "7", "value": "tea", "if_absent": true}}
    {"add": {"namespace": "counters", "key": "sold", "delta": 1}}

    {"put": {"namespace": "sessions", "key": "user:1", "value": "signed in", "ttl": "30m"}}

Keys and values of pairs are text, as ``cortado kv`` shows them. What is put or updated may have a ``ttl``, as text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from cortado.errors import InvalidArgument
from cortado.store.cli.numbers import expires_of, ttl
from cortado.store.transfer.byte_text import parse_bytes
from cortado.store.transfer.key_text import key_of_json

if TYPE_CHECKING:
    from cortado.store.client import KeyValue, Table, Transaction

_ROW_CONDITIONS: Final = ("if_absent", "if_present", "if_match")
_ROW_MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "put": ("document", "mode", "if_match", "ttl"),
    "update": ("key", "set", "if_match", "ttl"),
    "delete": ("key", "if_match"),
    "add": ("key", "field", "delta", "min", "max"),
    "check": ("key", *_ROW_CONDITIONS),
}
_PAIR_MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "put": ("key", "value", *_ROW_CONDITIONS, "if_value", "ttl"),
    "delete": ("key", "if_present", "if_match", "if_value"),
    "add": ("key", "delta", "min", "max"),
    "check": ("key", *_ROW_CONDITIONS, "if_value"),
}


def apply_operation(transaction: Transaction, value: Any) -> None:
    """One operation, to be committed with the others. Raises InvalidArgument naming the member, and what the client
    refuses."""
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _ROW_MEMBERS:
        raise InvalidArgument("", f"must be an object with one member: {', '.join(_ROW_MEMBERS)}", _shown(value))
    ((kind, asked),) = value.items()
    if not isinstance(asked, dict) or ("table" in asked) == ("namespace" in asked):
        raise InvalidArgument(kind, "must be an object that names a table or a namespace", _shown(asked))
    members = dict(asked)
    if "table" in members:
        table = transaction.table(_text(members.pop("table"), f"{kind}.table"))
        _check_members(members, kind, _ROW_MEMBERS[kind])
        _read_ttl(members, kind)
        _on_rows(kind, table, members)
        return
    namespace = _text(members.pop("namespace"), f"{kind}.namespace")
    if kind not in _PAIR_MEMBERS:
        raise InvalidArgument(kind, f"is nothing that is done to pairs: there are {', '.join(_PAIR_MEMBERS)}")
    _check_members(members, kind, _PAIR_MEMBERS[kind])
    _read_ttl(members, kind)
    _on_pairs(kind, transaction.kv(namespace), members)


def _on_rows(kind: str, table: Table, members: dict[str, Any]) -> None:
    if kind == "put":
        table.put(table.codec.from_json(_required(members, kind, "document")), **members)
        return
    key = key_of_json(_required(members, kind, "key"), table.descriptor.key, f"{kind}.key")
    if kind == "update":
        table.update(key, table.codec.changes_from_json(_object(members, kind, "set")), **members)
    elif kind == "add":
        field, delta = _text(_required(members, kind, "field"), "add.field"), _required(members, kind, "delta")
        table.add(key, field, delta, **members)
    else:
        act: Callable[..., Any] = table.delete if kind == "delete" else table.check
        act(key, **members)


def _on_pairs(kind: str, kv: KeyValue, members: dict[str, Any]) -> None:
    key = _bytes(_required(members, kind, "key"), f"{kind}.key")
    if "if_value" in members:
        members["if_value"] = _bytes(members["if_value"], f"{kind}.if_value")
    if kind == "put":
        kv.put(key, _bytes(_required(members, kind, "value"), "put.value"), **members)
    elif kind == "add":
        kv.add(key, _required(members, kind, "delta"), **members)
    else:
        act: Callable[..., Any] = kv.delete if kind == "delete" else kv.check
        act(key, **members)


def _check_members(members: dict[str, Any], kind: str, known: Collection[str]) -> None:
    for name in members:
        if name not in known:
            raise InvalidArgument(f"{kind}.{name}", f"is not known here: there are {', '.join(known)}")


def _read_ttl(members: dict[str, Any], kind: str) -> None:
    if "ttl" in members:
        field = f"{kind}.ttl"
        members["expires"] = expires_of(ttl(field)(_text(members.pop("ttl"), field)))


def _required(members: dict[str, Any], kind: str, name: str) -> Any:
    if name not in members:
        raise InvalidArgument(f"{kind}.{name}", "must be given")
    return members.pop(name)


def _object(members: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    value = _required(members, kind, name)
    if not isinstance(value, dict):
        raise InvalidArgument(f"{kind}.{name}", "must be an object of fields and their new values", _shown(value))
    return value


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(field, "must be text", _shown(value))
    return value


def _bytes(value: Any, field: str) -> bytes:
    return parse_bytes(_text(value, field), field)


def _shown(value: Any) -> str:
    return f"{value!r:.80}"
