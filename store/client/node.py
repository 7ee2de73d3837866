"""A connection to one given node, leader or not: for operators' questions.

::

    NodeConnection ─┬─ NodeStatistics   its counts and measures         cortado top
                    ├─ NodeInspector    its stored data                 cortado debug, scrub, damage
                    ├─ settings_of      its settings at its start       cortado config show
                    └─ store/doctor     its own report                  cortado doctor

:class:`~cortado.store.client.Client` finds the node that may answer; nothing here goes to another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self, TypeVar

import grpc
from google.protobuf.message import Message

from cortado.errors import NotLeader, OutcomeUnknown, TryAgain
from cortado.store.client.authorization import Authorization, TokenSource
from cortado.store.client.endpoints import Tls, blocking_channel, check_endpoint
from cortado.store.client.retry import failure_of

M = TypeVar("M", bound=Message)

_OPTIONS: Final = [
    ("grpc.max_receive_message_length", -1),
    # A pool of its own: other connections' pauses after a failure do not hold this one up,
    ("grpc.use_local_subchannel_pool", 1),
    # and a node that comes back is found within seconds, for callers that wait for just that.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]
_SERVING: Final = b"\x08\x01"
"""A HealthCheckResponse."""
_PAUSE_S: Final = 0.05


class NodeConnection:
    """The node at ``address`` (host:port), connected when it is first asked. A context manager.

    ``timeout_s`` bounds each call that is given no time of its own.
    """

    def __init__(
        self, address: str, *, tls: Tls | None = None, token: TokenSource | None = None, timeout_s: float = 10.0
    ) -> None:
        """Raises InvalidArgument for a wrong address or file."""
        self._authorization = Authorization(token)
        self._authorization.check_goes_to(address, is_encrypted=tls is not None)
        self.address = check_endpoint(address)
        self._timeout_s = timeout_s
        self._channel = blocking_channel(address, tls, _OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def ask(
        self,
        method: str,
        request: Message,
        reply_type: type[M],
        *,
        timeout_s: float | None = None,
        insists: bool = False,
        changes: bool = False,
    ) -> M:
        """Return the reply of a method of ``cortado.v1``, such as "Cluster/Status".

        If it ``insists``, a refusal for the moment is asked again until the time is over. A call that ``changes``
        something is not, once it may have been begun: OutcomeUnknown. Raises the node's refusal, Unavailable,
        DeadlineExceeded, Unsupported.
        """
        call = self._channel.unary_unary(_path(method), type(request).SerializeToString, reply_type.FromString)
        until_s = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        while True:
            try:
                reply: M = call(
                    request,
                    timeout=max(until_s - time.monotonic(), 0.001),
                    metadata=self._authorization.metadata(),
                )
                return reply
            except grpc.RpcError as error:
                failure = failure_of(error)
            problem = failure.error
            if changes and failure.may_have_happened:
                raise OutcomeUnknown(f"{problem.message()}; the work continues, as cortado status shows")
            if not insists or not isinstance(problem, TryAgain) or isinstance(problem, NotLeader):
                raise problem
            pause_s = max(_PAUSE_S, problem.retry_delay_ms / 1000)
            if until_s - time.monotonic() < pause_s:
                raise problem
            time.sleep(pause_s)

    def is_serving(self) -> bool:
        """Ask gRPC's health service, which answers every caller. Raises Unavailable, DeadlineExceeded."""
        check: Callable[..., bytes] = self._channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return check(b"", timeout=self._timeout_s) == _SERVING
        except grpc.RpcError as error:
            raise failure_of(error).error from None

    def replies(self, method: str, request: Message, reply_type: type[M]) -> Iterator[M]:
        """Yield the replies of a method that streams them, without a deadline: the consumer sets the pace."""
        try:
            yield from self._channel.unary_stream(
                _path(method), type(request).SerializeToString, reply_type.FromString
            )(request, metadata=self._authorization.metadata())
        except grpc.RpcError as error:
            raise failure_of(error).error from None


def _path(method: str) -> str:
    return f"/cortado.v1.{method}"
