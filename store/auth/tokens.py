"""The text of a bearer token: ``ctd_<id>_<secret>``.

The id (16 hexadecimal digits) tells tokens apart in lists and may be shown; the secret is 32 random bytes as base64url,
without padding. The client that makes a token sends only its :func:`digest_of`; the cluster never has the text. So a
leak of the log, of a backup or of the request table reveals no token.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cortado.errors import InvalidArgument

BEARER: Final = "Bearer"
"""The scheme of the header ``authorization`` of a call."""
ONLY_WITH_ROLES: Final = "Bearer-with-roles"
"""The same, for a call that is refused while roles are off."""
NO_SCHEME: Final = "?"
"""Stands for the token of a header of another scheme; no token reads so."""

_UNPRINTABLE: Final = "-"
"""Stands for a token with characters that no header carries; no token reads so."""
_SCHEMES: Final = frozenset(each.lower() for each in (BEARER, ONLY_WITH_ROLES))

DIGEST_BYTES: Final = 32
ID_CHARS: Final = 16
_SECRET_BYTES: Final = 32
_ID: Final = re.compile(r"[0-9a-f]{16}")
_TEXT: Final = re.compile(r"ctd_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_BEGUN: Final = re.compile(r"ctd_[0-9a-f]{4}[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A token that was made. Its ``text`` is secret, so a repr does not show it."""

    token_id: str
    text: str

    @property
    def digest(self) -> bytes:
        return digest_of(self.text)

    def __repr__(self) -> str:
        return f"Token({self.token_id!r}, ...)"


def make_token(random_bytes: Callable[[int], bytes]) -> Token:
    """Return a new token."""
    token_id = random_bytes(ID_CHARS // 2).hex()
    secret = urlsafe_b64encode(random_bytes(_SECRET_BYTES)).rstrip(b"=").decode()
    return Token(token_id, f"ctd_{token_id}_{secret}")


def token_id_of(text: str) -> str:
    """Return the id in a token's text; empty if the text is no token."""
    found = _TEXT.fullmatch(text)
    return found[1] if found else ""


def header_of(token: str, scheme: str = BEARER) -> str:
    """Return the header that carries ``token``; without a token it is the scheme alone.

    No header begins or ends with a blank, or has a control character (RFC 9113, §8.2.1): servers reset such calls.
    """
    token = token.strip(" ")
    if not token:
        return scheme
    return f"{scheme} {token if token.isascii() and token.isprintable() else _UNPRINTABLE}"


def token_of(authorization: str) -> str:
    """Return the token in a header; :data:`NO_SCHEME` if its scheme is not one of ours. A scheme has any case (RFC
    9110)."""
    scheme, _, rest = authorization.partition(" ")
    return rest.lstrip(" ") if scheme.lower() in _SCHEMES else NO_SCHEME


def counts_only_with_roles(authorization: str) -> bool:
    """Return whether a header's call is refused while roles are off."""
    return authorization.partition(" ")[0].lower() == ONLY_WITH_ROLES.lower()


def digest_of(text: str) -> bytes:
    """Return the stored form of a token: SHA-256 of its text."""
    return sha256(text.encode("utf-8", "replace")).digest()


def holds_token(text: str) -> bool:
    """Return whether a token, or the beginning of one, is in ``text``, which is then not to be shown."""
    return _BEGUN.search(text) is not None


def without_tokens(text: str) -> str:
    """``text`` as it may be shown: a token, or the beginning of one, is left out of it."""
    return _BEGUN.sub("(a token)", text)


def check_token(text: str, field: str = "token") -> str:
    """Return ``text`` if it is a token. Raises InvalidArgument naming ``field``, which never quotes it."""
    if not isinstance(text, str) or not token_id_of(text):
        raise InvalidArgument(field, "must look like ctd_<id>_<secret>, as cortado auth printed it")
    return text


def check_token_id(token_id: str, field: str = "token_id") -> str:
    """Return ``token_id`` if it is one. Raises InvalidArgument naming ``field``."""
    if not _ID.fullmatch(token_id):
        raise InvalidArgument(field, f"must be {ID_CHARS} hexadecimal digits", repr(token_id[:80]))
    return token_id
