"""The answer of ``cortado debug mvcc``: all versions of a key, for people and for scripts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.cli.failures import DAMAGE, OK
from cortado.store.cli.inspecting import shown_ts
from cortado.store.cli.numbers import expiry_text
from cortado.store.cli.render import Renderer, count
from cortado.store.client.inspect import Inspected
from cortado.store.keys.decoded import KeyKind, decode_key
from cortado.store.transfer.byte_text import bytes_to_text

_TEXT_MAX: Final = 200


def versions_of(node: Inspected, request: pb.ReadVersionsRequest, limit: int | None) -> Iterator[pb.StoredVersion]:
    left = limit
    while left is None or left > 0:
        request.page_size = min(left or 1_000, 1_000)
        reply = node.read_versions(request)
        yield from reply.versions
        if not reply.next_page_token:
            return
        left = None if left is None else left - len(reply.versions)
        request.page_token = reply.next_page_token


@dataclass(slots=True)
class VersionsAnswer:
    """Versions as they come, up to ``shown_max``; it is told when one was damaged."""

    versions: Iterator[pb.StoredVersion]
    shown_max: int | None
    is_damaged: bool = False

    @property
    def exit_code(self) -> int:
        return DAMAGE if self.is_damaged else OK

    def as_json(self) -> Iterator[Any]:
        for each in islice(self.versions, self.shown_max):
            self.is_damaged |= bool(each.problem)
            yield _version_json(each)

    def as_table(self, show: Renderer) -> None:
        versions = list(self.versions)
        shown = versions[: self.shown_max]
        self.is_damaged = any(each.problem for each in shown)
        rows = [_row(each) for each in shown]
        columns = ("key", "timestamp", "kind", "bytes", "checksum", "value")
        if len({row[0] for row in rows}) > 1:
            show.table(columns, rows)
        elif rows:
            show.line(rows[0][0])
            show.table(columns[1:], [row[1:] for row in rows])
        more = ", and there are more (--limit)" if len(versions) > len(shown) else ""
        show.note(count(len(shown), "version") + more)


def _row(version: pb.StoredVersion) -> tuple[Any, ...]:
    return (
        version.key.text.rpartition(" @")[0] or version.key.text,
        shown_ts(version.timestamp) or "-",
        f"{version.kind}, until {expiry_text(version.expires_ms)}" if version.expires_ms else version.kind,
        version.payload_bytes,
        "ok" if version.is_intact else "WRONG",
        _cut(_value_text(version)),
    )


def _version_json(version: pb.StoredVersion) -> dict[str, Any]:
    return {
        "key": version.key.key.hex(),
        "text": version.key.text,
        "timestamp": shown_ts(version.timestamp),
        "kind": version.kind,
        "intact": version.is_intact,
        "payload_bytes": version.payload_bytes,
        **({"expires_ms": version.expires_ms} if version.expires_ms else {}),
        "payload": base64.b64encode(version.payload).decode(),
        "schema_id": version.schema_id or None,
        "value": _value_json(version),
        "problem": version.problem or None,
    }


def _value_text(version: pb.StoredVersion) -> str:
    if version.problem:
        return version.problem
    if version.kind != "put":
        return ""
    return version.value or bytes_to_text(version.payload)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}... (-o json shows all)"


def _value_json(version: pb.StoredVersion) -> Any:
    """Return a document as an object, a pair's value as the key-value commands show it, else text; None for none."""
    kind = decode_key(version.key.key).kind
    if version.kind != "put" or version.problem:
        return None
    if kind is KeyKind.PAIR:
        return bytes_to_text(version.payload) if len(version.payload) == version.payload_bytes else None
    if not version.value:
        return None
    return json.loads(version.value) if kind in (KeyKind.ROW, KeyKind.CATALOG) else version.value
