"""A call as its methods see it, the same for both fronts.

gRPC's own context is one (``grpc.aio.ServicerContext``), and the native front's is the other
(:class:`cortado.store.server.front_call.Call`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import grpc

from cortado.errors import CortadoError


def status_code(error: CortadoError) -> grpc.StatusCode:
    """Return gRPC's code of the error's class."""
    return grpc.StatusCode[error.code]


class Here:
    """A call of the native front. Its message may have arrived before its method reads it."""

    __slots__ = ()

    def whole_message(self) -> bytes | None:
        """Return the next message if all of it is here."""
        raise NotImplementedError

    def let_in(self) -> None:
        """Record that its caller is admitted: the connection is no stranger's."""
        raise NotImplementedError


class Context(Protocol):
    async def read(self) -> Any:
        """Return the next message; ``grpc.aio.EOF`` behind the last."""

    async def write(self, message: Any) -> None:
        """Return once the message was passed on. Raises if the call is over."""

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> NoReturn:
        """End the call with an error. The caller of this method must not catch the exception that it raises."""

    def invocation_metadata(self) -> Any:
        """Return pairs of names and values, which are text or bytes."""

    def auth_context(self) -> Mapping[str, Any]:
        """Return the ``x509_subject_alternative_name`` of the caller's certificate."""

    def peer(self) -> str:
        """Return the name of the connection."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call ``callback`` with the context once the call is over: answered and sent, or broken off."""
