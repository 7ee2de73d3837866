"""Shared by the inspecting commands: the node to inspect, and keys and timestamps of messages as text.

They read one node: the running one that ``--endpoint`` names, leader or not, or with ``--data-dir`` the directory of
one that is stopped. Both answer with the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cortado.errors import InvalidArgument, NotFound
from cortado.extras import needing
from cortado.proto.v1 import common_pb2
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.cli.session import Session
from cortado.store.client.inspect import Inspected, NodeInspector
from cortado.store.client.values import datetime_of, timestamp_of
from cortado.store.clock.timestamp import ZERO
from cortado.store.keys.decoded import DecodedKey, DecodedPart, KeyKind, KeyNames
from cortado.store.keys.types import KeyType
from cortado.store.transfer.byte_text import parse_bytes
from cortado.store.transfer.key_text import key_to_json

if TYPE_CHECKING:
    from cortado.store.server.inspection.stopped import StoppedNode


def stopped_node(data_dir: Path) -> StoppedNode:
    """Return the directory of a node that does not run. Raises DataDirectoryError, Unsupported without the server's
    extra."""
    with needing("server", "reading a directory"):
        from cortado.store.server.inspection.stopped import StoppedNode
    return StoppedNode(data_dir)


def running_node(session: Session) -> NodeInspector:
    """Return the node at the first endpoint that answers. Raises Unavailable."""
    addresses = session.endpoint.split(",")
    return NodeInspector(addresses, tls=session.tls(), token=session.token, timeout_s=session.timeout_s)


@contextmanager
def inspected(session: Session, data_dir: Path | None) -> Iterator[Inspected]:
    """Open the node that a command inspects."""
    with running_node(session) if data_dir is None else stopped_node(data_dir) as node:
        yield node


def table_of(session: Session, node: Inspected, name: str) -> TableDescriptor:
    """Return a table's description from the inspected node; of a running cluster, the leader's. Raises NotFound."""
    if isinstance(node, NodeInspector):
        with session.client() as client:
            return client.describe(name)
    found = next((table for table in node.tables() if table.full_name == name), None)
    if found is None:
        raise NotFound("table", name)
    return found


def index_of(table: TableDescriptor, name: str) -> IndexDescriptor:
    """Raise NotFound."""
    found = table.index(name)
    if found is None:
        raise NotFound("index", f"{table.full_name}.{name}")
    return found


def parse_stored_key(text: str) -> bytes:
    """Return a stored key in hexadecimal, or as text with escapes. Raises InvalidArgument."""
    if not text:
        raise InvalidArgument("HEX", "must not be empty")
    if "\\" in text:
        return parse_bytes(text, "HEX")
    try:
        return bytes.fromhex(text)
    except ValueError:
        problem = "must be hexadecimal digits, two a byte, or text with \\xNN for a byte"
        raise InvalidArgument("HEX", problem, repr(text)) from None


# --- showing ---------------------------------------------------------------------------------------------------


def shown_ts(message: common_pb2.Timestamp) -> str | None:
    """Return a timestamp's text; None for none."""
    ts = timestamp_of(message)
    return None if ts == ZERO else str(ts)


def key_json(key: DecodedKey, names: KeyNames) -> dict[str, Any]:
    """Return a stored key as JSON; fields that its kind does not have are left out."""
    found: dict[str, Any] = {"key": key.key.hex(), "kind": str(key.kind), "text": key.text(names)}
    optional = {
        "table_id": key.table_id,
        "table": key.table_name(names) or None,
        "index_id": key.index_id,
        "generation": key.generation,
        "index": key.index_name(names) or None,
        "group_id": key.group_id,
        "segment": key.log_segment,
        "request_segment": key.request_segment,
        "offset": key.offset,
        "request_id": key.request_id.hex() or None,
        "timestamp": None if key.ts is None else str(key.ts),
    }
    found |= {name: value for name, value in optional.items() if value is not None}
    if key.kind in (KeyKind.ROW, KeyKind.INDEX_ENTRY, KeyKind.PAIR, KeyKind.CATALOG, KeyKind.STAGED):
        found["parts"] = [part_json(part) for part in key.parts]
    return found


def part_json(part: DecodedPart) -> dict[str, Any]:
    """Return a part as commands take it back, with its type."""
    value: Any = part.value
    if part.type is KeyType.TIMESTAMP and isinstance(value, int):
        value = datetime_of(value)
    (shown,) = key_to_json((value,)) or [None]
    return {"type": "null" if part.type is None else str(part.type), "descending": part.descending, "value": shown}
