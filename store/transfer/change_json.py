"""Changes as JSON, as ``cortado watch -o json`` writes them and the gateway's events carry them."""

from __future__ import annotations

from typing import Any

from cortado.store.client.documents import Document
from cortado.store.client.values import Key
from cortado.store.client.watch import Change, Changed
from cortado.store.transfer.byte_text import bytes_to_text
from cortado.store.transfer.key_text import key_to_json


def pair_json(change: Change[bytes, bytes]) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": bytes_to_text(change.key)}
    if isinstance(change, Changed):
        shown["value"] = bytes_to_text(change.value)
        if change.expires_ms:
            shown["expires_ms"] = change.expires_ms
    if change.previous is not None:
        shown["previous"] = bytes_to_text(change.previous)
    return shown


def document_json(change: Change[Key, Document]) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": key_to_json(change.key)}
    if isinstance(change, Changed):
        shown["document"] = change.value.to_json()
        if change.expires_ms:
            shown["expires_ms"] = change.expires_ms
    if change.previous is not None:
        shown["previous"] = change.previous.to_json()
    return shown
