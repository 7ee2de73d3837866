"""Protobuf messages as stored values.

One message is always the same bytes, so that replicas can be compared; bytes that are no message are damage.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from cortado.errors import DataLoss

_Stored = TypeVar("_Stored", bound=Message)


def encode_stored(message: Message) -> bytes:
    """Return the bytes of a value: always the same of the same message."""
    return message.SerializeToString(deterministic=True)


def decode_stored(kind: type[_Stored], payload: bytes, what: str) -> _Stored:
    """Return the message in a value of the ``what``, such as the catalogue. Raises DataLoss."""
    message = kind()
    try:
        message.ParseFromString(payload)
    except DecodeError as malformed:
        raise DataLoss(what, f"a value is no {kind.__name__}") from malformed
    return message
