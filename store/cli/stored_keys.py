"""Stored keys of the ``key`` commands: taken apart with the names of tables, and put together from typed parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from cortado.errors import CortadoError
from cortado.store.catalog.descriptors import key_names
from cortado.store.cli.answers import Said
from cortado.store.cli.inspecting import key_json, running_node
from cortado.store.cli.session import Session
from cortado.store.client.values import Part, micros_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import INVERTED, encode_parts
from cortado.store.keys.decoded import NO_NAMES, DecodedKey, KeyNames, decode_key
from cortado.store.keys.keyspace import check_key_length
from cortado.store.keys.types import KeyPart, KeyValue
from cortado.store.transfer.key_text import parse_key

# Names are a help, and not worth waiting for.
_NAMES_TIMEOUT_S: Final = 1.0


def names_of(session: Session, keys: Sequence[DecodedKey]) -> KeyNames:
    """Return the names of tables, if some key names one and a server answers at once."""
    if all(each.table_id is None for each in keys):
        return NO_NAMES
    problem: CortadoError | None = None
    for endpoint in session.endpoint.split(","):
        asked = replace(session, endpoint=endpoint, timeout_s=min(session.timeout_s, _NAMES_TIMEOUT_S))
        try:
            with running_node(asked) as node:
                return key_names(node.tables())
        except CortadoError as refused:
            problem = refused
    session.show.note(f"tables are shown by their ids: {problem}")
    return NO_NAMES


def encoded(texts: Sequence[str], parts: Sequence[KeyPart], *, nullable: int = 0) -> bytes:
    """Return the encoded parts, read as :func:`parse_key` reads them."""
    values = [_key_value(part) for part in parse_key(texts, parts, prefix=True, nullable=nullable)]
    return encode_parts(values, parts[: len(values)])


def _key_value(part: Part) -> KeyValue:
    return micros_of(part, "key") if isinstance(part, datetime) else part


def stored_key(key: bytes, version_at: str | None, names: KeyNames) -> Said:
    """Return the stored key, of a version if ``version_at`` names one. Raises KeyTooLong, InvalidArgument."""
    check_key_length(key, "key")
    if version_at is not None:
        key += bytes(Timestamp.parse(version_at)).translate(INVERTED)
    return Said(key.hex(), key_json(decode_key(key), names))
