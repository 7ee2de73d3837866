"""Page tokens: the place and the time at which a listing or a scan goes on.

A token is opaque to callers, and good for the request that it was given out for and no other: it carries a digest of
the request's *shape* (everything but the page's size). It also carries the timestamp that the first page was read at,
so that all pages show one state. Layout, version 1::

    1 byte   version
    12 bytes read timestamp
    8 bytes  rows still allowed by the request's limit, big-endian; all ones for no limit
    16 bytes digest of the request's shape
    n bytes  resume key
    8 bytes  BLAKE2b of all that stands before

The checksum finds damage, not malice: a caller can forge a token. So the server that resumes must check the resume key
against the request's own range (:meth:`PageToken.resume_within`), or a token would open another table.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from cortado.errors import InvalidPageToken
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp

TOKEN_BYTES_MAX: Final = 1024

_VERSION: Final = 1
_UNLIMITED: Final = (1 << 64) - 1
_SHAPE_BYTES: Final = 16
_CHECKSUM_BYTES: Final = 8
_HEAD = struct.Struct(f">B{TIMESTAMP_BYTES}sQ{_SHAPE_BYTES}s")


@dataclass(frozen=True, slots=True)
class PageToken:
    """Go on at ``read_ts`` from the key ``resume``, with at most ``remaining`` rows to come (None: no limit)."""

    read_ts: Timestamp
    resume: bytes
    remaining: int | None = None

    def resume_within(self, start: bytes, end: bytes) -> bytes:
        """Return ``resume`` if it lies in ``[start, end]``. Raises InvalidPageToken."""
        if not start <= self.resume <= end:
            raise InvalidPageToken("page_token", "goes on outside of the range that was asked for")
        return self.resume


def request_shape(*parts: bytes | str | int | bool | None) -> bytes:
    """Return a digest of the request's parts. Types and boundaries count: ``("a", "b")`` is not ``("ab",)``."""
    digest = blake2b(digest_size=_SHAPE_BYTES)
    for part in parts:
        encoded = part if isinstance(part, bytes) else str(part).encode()
        digest.update(f"{type(part).__name__}:{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.digest()


def encode_token(token: PageToken, shape: bytes) -> bytes:
    """Return the token's bytes, bound to the request of this ``shape`` (16 bytes, from :func:`request_shape`)."""
    remaining = _UNLIMITED if token.remaining is None else token.remaining
    body = _HEAD.pack(_VERSION, bytes(token.read_ts), remaining, shape) + token.resume
    return body + _checksum(body)


def decode_token(encoded: bytes, shape: bytes) -> PageToken:
    """Return the token that :func:`encode_token` made for the same ``shape``. Raises InvalidPageToken."""
    token, token_shape = _decode(encoded)
    if token_shape != shape:
        raise InvalidPageToken("page_token", "was given out for another request: repeat the same one with it")
    return token


def read_ts_of(encoded: bytes) -> Timestamp:
    """Return a token's read timestamp, for a caller that needs it to find out the token's shape. Raises
    InvalidPageToken."""
    return _decode(encoded)[0].read_ts


def _decode(encoded: bytes) -> tuple[PageToken, bytes]:
    if len(encoded) > TOKEN_BYTES_MAX:
        raise InvalidPageToken("page_token", f"must have at most {TOKEN_BYTES_MAX} bytes", f"{len(encoded)} bytes")
    body, checksum = encoded[:-_CHECKSUM_BYTES], encoded[-_CHECKSUM_BYTES:]
    if len(body) < _HEAD.size or _checksum(body) != checksum:
        raise InvalidPageToken("page_token", "is not a page token, or is damaged", f"{len(encoded)} bytes")
    version, read_ts, remaining, token_shape = _HEAD.unpack_from(body)
    if version != _VERSION:
        raise InvalidPageToken("page_token", f"is of format {version}; this server reads format {_VERSION}")
    if remaining == 0:
        raise InvalidPageToken("page_token", "continues a call that has returned all that was requested")
    token = PageToken(
        read_ts=Timestamp.from_bytes(read_ts),
        resume=body[_HEAD.size :],
        remaining=None if remaining == _UNLIMITED else remaining,
    )
    return token, token_shape


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_CHECKSUM_BYTES).digest()
