"""Who a client's calls are made for: its own token, or somebody else's that it hands on.

::

    Client(token="ctd_...")            a token's text
    Client(token=Path("app.token"))    a file that holds one, and is read again when it is replaced; a pipe is read once
    ON_BEHALF                          of the task that runs: what its caller has shown to us, passed on as it is, or
                                       as one that counts only where roles are on

A client that hands on others' credentials never adds its own: :data:`ON_BEHALF` replaces them, also where it holds none
(``Bearer`` with nothing behind it), and then the call is nobody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.auth.tokens import BEARER, ONLY_WITH_ROLES, check_token, holds_token, token_of
from cortado.store.client.traces import trace_metadata
from cortado.store.named_files import read_named

TokenSource: TypeAlias = str | Path
Metadata: TypeAlias = tuple[tuple[str, str], ...]

HEADER: Final = "authorization"
_FILE_BYTES_MAX: Final = 4_096
_LOOK_S: Final = 1.0
"""A file is not looked at more often."""

NOBODY: Final = BEARER
"""A header that shows nothing, and so is not ourselves."""
ON_BEHALF: Final[ContextVar[str]] = ContextVar("cortado_on_behalf", default="")
"""A header's text, or empty: nobody but ourselves."""


def only_with_roles(header: str) -> str:
    """``header``, as that of a call which is refused while the cluster has no roles: then it would be allowed whatever
    it shows."""
    return f"{ONLY_WITH_ROLES}{token_of(header)}"


class Authorization:
    """A client's own. Its text is in no repr and in no error."""

    def __init__(self, token: TokenSource | None, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        """Raises InvalidArgument for what is no token, or a file that holds none."""
        self._monotonic_s = monotonic_s
        self._path = token if isinstance(token, Path) else None
        self._looked_s = float("-inf")
        self._header = ""
        if self._path is not None:
            self._header = _bearer(_read(self._path))
            self._looked_s = monotonic_s()
        elif token is not None:
            self._header = _bearer(check_token(str(token)))

    def check_goes_to(self, address: str, *, is_encrypted: bool) -> None:
        """Raises InvalidArgument where a token of ours would go over a network unencrypted."""
        if not self._header or is_encrypted:
            return
        from cortado.store.addresses import is_loopback

        host = address.rpartition(":")[0].strip("[]")
        if not is_loopback(host):
            raise InvalidArgument("token", f"would go to {address} unencrypted: give the certificates' authority, too")

    def header(self) -> str:
        """Whose a call is that is made now; empty for nobody's."""
        return ON_BEHALF.get() or self._own()

    def of_call(self) -> str:
        """What a call says on a stream that was opened as ourselves, where that is something else, or may have become
        something else since."""
        return ON_BEHALF.get() or ("" if self._path is None else self._own())

    def of_stream(self) -> Metadata | None:
        """Of the stream that many calls share, whoever they are made for."""
        own = self._own()
        return ((HEADER, own),) if own else None

    def metadata(self) -> Metadata | None:
        """Of a gRPC call of its own: this, and the caller's trace."""
        header, trace = self.header(), trace_metadata()
        if not header:
            return trace
        return ((HEADER, header), *(trace or ()))

    def _own(self) -> str:
        if self._path is not None and self._monotonic_s() - self._looked_s > _LOOK_S:
            self._looked_s = self._monotonic_s()
            # It is being replaced, or is gone: what was read before counts until it is refused.
            with suppress(InvalidArgument):
                self._header = _bearer(_read(self._path))
        return self._header


NOBODYS: Final = Authorization(None)


def check_source(source: TokenSource, field: str) -> None:
    """Raises InvalidArgument naming ``field`` for what is no token, or a file that holds none."""
    if isinstance(source, Path):
        _read(source, field)
    else:
        check_token(source, field)


def _bearer(token: str) -> str:
    return f"{BEARER}{token}"


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
