"""Operations of a transaction as JSON: an object with one member, the operation and its target::

    {"put": {"table": "shop.items", "document": {"id": "tea", "left": 9}, "if_absent": true}}
    {"update": {"table": "shop.items", "key": ["tea"], "set": {"left": 8}, "if_etag": "0.1763643600000.2"}}
    {"delete": {"table": "shop.items", "key": ["milk"]}}
    {"add": {"table": "shop.items", "key": ["tea"], "field": "left", "delta": -1, "min": 0}}
    {"require": {"table": "shop.items", "key": ["tea"], "if_present": true}}
    {"put": {"namespace": "log", "key": "7", "value": "tea", "if_absent": true}}
    {"add": {"namespace": "counters", "key": "sold", "delta": 1}}

    {"put": {"namespace": "sessions", "key": "user:1", "value": "signed in", "ttl": "30m"}}

Keys and values of pairs are text, as ``cortado kv`` shows them. Puts and updates may have a ``ttl``, as text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.client.values import Expires
from cortado.store.clock.retentions import parse_retention
from cortado.store.clock.timestamp import TTL_MS_MAX
from cortado.store.transfer.byte_text import parse_bytes

_ROW_CONDITIONS: Final = ("if_absent", "if_present", "if_etag")
_ROW_MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "put": ("document", *_ROW_CONDITIONS, "ttl"),
    "update": ("key", "set", "if_etag", "ttl"),
    "delete": ("key", "if_etag"),
    "add": ("key", "field", "delta", "min", "max"),
    "require": ("key", *_ROW_CONDITIONS),
}
_PAIR_MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "put": ("key", "value", *_ROW_CONDITIONS, "if_value", "ttl"),
    "delete": ("key", "if_present", "if_etag", "if_value"),
    "add": ("key", "delta", "min", "max"),
    "require": ("key", *_ROW_CONDITIONS, "if_value"),
}


@dataclass(frozen=True, slots=True)
class OperationAsked:
    """``kind`` on a row of ``table`` or, if that is empty, on a pair of ``namespace``.

    ``members`` are arguments of the client's method of that name, but for what only the table's schema can read: a
    row's ``key``, ``document`` and ``set`` are JSON.
    """

    kind: str
    table: str
    namespace: str
    members: dict[str, Any]


def read_operation(value: Any) -> OperationAsked:
    """One operation. Raises InvalidArgument naming the member."""
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _ROW_MEMBERS:
        raise InvalidArgument("", f"must be an object with one member: {', '.join(_ROW_MEMBERS)}", _shown(value))
    ((kind, asked),) = value.items()
    if not isinstance(asked, dict) or ("table" in asked) == ("namespace" in asked):
        raise InvalidArgument(kind, "must be an object that names a table or a namespace", _shown(asked))
    members = dict(asked)
    if "table" in members:
        table = _text(members.pop("table"), f"{kind}.table")
        _check_members(members, kind, _ROW_MEMBERS[kind])
        _read_ttl(members, kind)
        _check_row(members, kind)
        return OperationAsked(kind, table, "", members)
    namespace = _text(members.pop("namespace"), f"{kind}.namespace")
    if kind not in _PAIR_MEMBERS:
        raise InvalidArgument(kind, f"is nothing that is done to pairs: there are {', '.join(_PAIR_MEMBERS)}")
    _check_members(members, kind, _PAIR_MEMBERS[kind])
    _read_ttl(members, kind)
    _check_pair(members, kind)
    return OperationAsked(kind, "", namespace, members)


def expires_of(text: str, field: str) -> Expires:
    """Return the expiry of a row or pair that lives so long: ``90s``, ``7d``, ``none`` for ever. Raises
    InvalidArgument."""
    if text == "none":
        return "never"
    found = parse_retention(text)
    if found is None or not 1 <= found <= TTL_MS_MAX:
        raise InvalidArgument(field, "must be a time such as 90s, 30m, 12h or 7d, or none", repr(text))
    return timedelta(milliseconds=found)


def _check_row(members: dict[str, Any], kind: str) -> None:
    _require(members, kind, "document" if kind == "put" else "key")
    if kind == "update":
        changes = _require(members, kind, "set")
        if not isinstance(changes, dict):
            raise InvalidArgument(f"{kind}.set", "must be an object of fields and their new values", _shown(changes))
    elif kind == "add":
        _text(_require(members, kind, "field"), "add.field")
        _require(members, kind, "delta")


def _check_pair(members: dict[str, Any], kind: str) -> None:
    members["key"] = _bytes(_require(members, kind, "key"), f"{kind}.key")
    if "if_value" in members:
        members["if_value"] = _bytes(members["if_value"], f"{kind}.if_value")
    if kind == "put":
        members["value"] = _bytes(_require(members, kind, "value"), "put.value")
    elif kind == "add":
        _require(members, kind, "delta")


def _check_members(members: dict[str, Any], kind: str, known: Collection[str]) -> None:
    for name in members:
        if name not in known:
            raise InvalidArgument(f"{kind}.{name}", f"is not known here: there are {', '.join(known)}")


def _read_ttl(members: dict[str, Any], kind: str) -> None:
    if "ttl" in members:
        field = f"{kind}.ttl"
        members["expires"] = expires_of(_text(members.pop("ttl"), field), field)


def _require(members: dict[str, Any], kind: str, name: str) -> Any:
    if name not in members:
        raise InvalidArgument(f"{kind}.{name}", "must be given")
    return members[name]


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(field, "must be text", _shown(value))
    return value


def _bytes(value: Any, field: str) -> bytes:
    return parse_bytes(_text(value, field), field)


def _shown(value: Any) -> str:
    return f"{value!r:.80}"
