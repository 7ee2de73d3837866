"""What a call is to those who serve it, whichever front its bytes came through.

gRPC's own context is one (``grpc.aio.ServicerContext``), and the native front's is the other
(:class:`cortado.store.server.front_call.Call`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import grpc


class Here:
    """A call of the native front. Its message may have arrived before somebody asks for it."""

    __slots__ = ()

    def whole_message(self) -> bytes | None:
        """The next message, where all of it is here."""
        raise NotImplementedError

    def let_in(self) -> None:
        """Its caller may call: the connection is no stranger's."""
        raise NotImplementedError


class Context(Protocol):
    async def read(self) -> Any:
        """The next message; ``grpc.aio.EOF`` behind the last."""

    async def write(self, message: Any) -> None:
        """Return once it was passed on. Raises where the call is over."""

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> NoReturn:
        """End the call with an error. What it raises has to be let through."""

    def invocation_metadata(self) -> Any:
        """Pairs of names and values, which are text or bytes."""

    def auth_context(self) -> Mapping[str, Any]:
        """What the caller's certificate says: its ``x509_subject_alternative_name``."""

    def peer(self) -> str:
        """Names the connection."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """``callback`` gets the context once the call is over: answered and sent, or broken off."""
