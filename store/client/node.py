"""A connection to one given node, leader or not: for operators' questions.

::

    NodeConnection ─┬─ NodeStatistics   its counts and measures         cortado top
                    ├─ NodeInspector    its stored data                 cortado debug, scrub, damage
                    ├─ settings_of      its settings at its start       cortado config show
                    └─ store/doctor     its own report                  cortado doctor

:class:`~cortado.store.client.Client` finds the node that may answer; nothing here goes to another one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self, TypeVar

from google.protobuf.message import DecodeError, Message

from cortado.errors import Internal, NotLeader, OutcomeUnknown, TryAgain
from cortado.store.client.authorization import Authorization, TokenSource
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.runtime import BlockingRuntime
from cortado.store.client.channel import stays
from cortado.store.client.endpoints import Tls, check_endpoint
from cortado.store.client.retry import Failed, Failure

M = TypeVar("M", bound=Message)

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
        if tls is not None:
            tls.context()
        self._runtime = BlockingRuntime()
        self._wire = self._runtime.wire(address, tls, self._authorization)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        run(self._wire.close())
        run(self._runtime.close())

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
        encoded = request.SerializeToString()
        until_s = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        while True:
            try:
                reply = self._call(f"cortado.v1.{method}", encoded, max(until_s - time.monotonic(), 0.001))
                return _parsed(reply_type.FromString, reply, method)
            except Failed as failed:
                failure = failed.failure
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
        try:
            return self._call("grpc.health.v1.Health/Check", b"", self._timeout_s) == _SERVING
        except Failed as failed:
            raise failed.failure.error from None

    def replies(self, method: str, request: Message, reply_type: type[M]) -> Iterator[M]:
        """Yield the replies of a method that streams them, without a deadline: the consumer sets the pace."""
        stream = self._wire.stream(
            f"cortado.v1.{method}", request.SerializeToString(), reply_type.FromString, math.inf, stays
        )
        try:
            while (reply := run(stream.receive())) is not None:
                yield reply
        except Failed as failed:
            raise failed.failure.error from None
        finally:
            stream.close()

    def _call(self, method: str, request: bytes, timeout_s: float) -> bytes:
        """Return the reply to one attempt. Raises Failed."""
        call = self._wire.ask(method, request, timeout_s)
        try:
            while not run(call.wait(timeout_s)):
                pass  # Its own deadline ends it.
        except BaseException:
            call.give_up()
            raise
        return call.outcome()


def _parsed(parse: Callable[[bytes], M], reply: bytes, method: str) -> M:
    try:
        return parse(reply)
    except DecodeError:
        unreadable = Internal(f"the node sent a reply of {method} that cannot be read")
        raise Failed(Failure(unreadable, answered=False, sent=True)) from None
