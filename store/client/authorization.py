"""The credentials of a client's calls: its own token, or another caller's that it hands on.

::

    Client(token="ctd_...")            a token's text
    Client(token=Path("app.token"))    a file that holds one, and is read again when it is replaced; a pipe is read once
    ON_BEHALF                          of the task that runs: its caller's credentials, passed on as they are, or
                                       as ones that count only if roles are on

A client that hands on others' credentials never adds its own: :data:`ON_BEHALF` replaces them. If it holds none
(``Bearer`` with nothing behind it), the call is unauthenticated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.auth.tokens import BEARER, ONLY_WITH_ROLES, check_token, header_of, holds_token, token_of
from cortado.store.client.traces import trace_metadata
from cortado.store.files.named_files import read_named

TokenSource: TypeAlias = str | Path
Metadata: TypeAlias = tuple[tuple[str, str], ...]

HEADER: Final = "authorization"
_FILE_BYTES_MAX: Final = 4_096
_LOOK_S: Final = 1.0
"""The shortest time between two looks at a file."""

NOBODY: Final = BEARER
"""A header without credentials: the call is unauthenticated, and not this client's own."""
ON_BEHALF: Final[ContextVar[str]] = ContextVar("cortado_on_behalf", default="")
"""A header's text; if empty, calls carry this client's own credentials."""


def only_with_roles(header: str) -> str:
    """Return ``header`` marked so that a cluster without roles refuses the call, which it would allow with any
    credentials otherwise."""
    return header_of(token_of(header), ONLY_WITH_ROLES)


class Authorization:
    """A client's own credentials. Their text is in no repr and in no error."""

    def __init__(self, token: TokenSource | None, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        """Raises InvalidArgument if ``token`` is not a token, or names a file that holds none."""
        self._monotonic_s = monotonic_s
        self._path = token if isinstance(token, Path) else None
        self._looked_s = float("-inf")
        self._header = ""
        if self._path is not None:
            self._header = header_of(_read(self._path))
            self._looked_s = monotonic_s()
        elif token is not None:
            self._header = header_of(check_token(str(token)))

    def check_goes_to(self, address: str, *, is_encrypted: bool) -> None:
        """Raise InvalidArgument if this client's token would go over a network unencrypted."""
        if not self._header or is_encrypted:
            return
        from cortado.store.ports.addresses import is_loopback

        host = address.rpartition(":")[0].strip("[]")
        if not is_loopback(host):
            raise InvalidArgument("token", f"would go to {address} unencrypted: give the certificates' authority, too")

    def header(self) -> str:
        """Return the header of a call that is made now; empty without credentials."""
        return ON_BEHALF.get() or self._own()

    def of_call(self) -> str:
        """Return a call's header on a stream that was opened with this client's own credentials. It is empty unless
        the call's differ, or may have changed since."""
        return ON_BEHALF.get() or ("" if self._path is None else self._own())

    def of_stream(self) -> Metadata | None:
        """Return the metadata of the stream that many calls share: always this client's own credentials."""
        own = self._own()
        return ((HEADER, own),) if own else None

    def metadata(self) -> Metadata | None:
        """Return the metadata of a gRPC call of its own: the header, and the caller's trace."""
        header, trace = self.header(), trace_metadata()
        if not header:
            return trace
        return ((HEADER, header), *(trace or ()))

    def _own(self) -> str:
        if self._path is not None and self._monotonic_s() - self._looked_s > _LOOK_S:
            self._looked_s = self._monotonic_s()
            # The file is being replaced, or is gone: the token read before counts until it is refused.
            with suppress(InvalidArgument):
                self._header = header_of(_read(self._path))
        return self._header


NOBODYS: Final = Authorization(None)


def check_source(source: TokenSource, field: str) -> None:
    """Raise InvalidArgument naming ``field`` if ``source`` is not a token, or names a file that holds none."""
    if isinstance(source, Path):
        _read(source, field)
    else:
        check_token(source, field)


def _read(path: Path, field: str = "token") -> str:
    if holds_token(str(path)):
        problem = "must be text, or the path of a file that holds it, and is a path that is itself a token"
        raise InvalidArgument(field, problem)
    try:
        content = read_named(path, _FILE_BYTES_MAX)
    except OSError as error:
        raise InvalidArgument(field, f"cannot be read: {error.strerror}", str(path)) from None
    try:
        return check_token(content.decode("ascii", "replace").strip())
    except InvalidArgument:
        raise InvalidArgument(field, "must be a file that holds a token and nothing else", str(path)) from None
