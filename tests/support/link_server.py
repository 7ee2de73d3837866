"""A link without I/O, and the server's half of its connection in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cortado.errors import CortadoError
from cortado.store.client.link.call import Call
from cortado.store.client.link.link import Link
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Data, Opened, Reset
from cortado.store.h2.fields import Head
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD, prefixed, status_trailers
from cortado.store.h2.limits import H2Limits
from cortado.store.wire.rpc_errors import status_message, trailing_metadata
from support.grpc_errors import status_code
from support.h2 import Clock, events


class Told(Call):
    """A call that counts how often it was told."""

    __slots__ = ("times",)

    def tell(self) -> None:
        self.times = getattr(self, "times", 0) + 1


@dataclass
class Asked:
    """A request as the server has received it."""

    head: Head
    data: bytes = b""
    is_whole: bool = False
    is_reset: bool = False


@dataclass
class World:
    """A link to a server, and time."""

    limits: H2Limits = field(default_factory=H2Limits)
    ahead_bytes: int = 65_535
    clock: Clock = field(default_factory=Clock)
    asked: dict[int, Asked] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.link = Link("n1.test:1", self.clock, is_encrypted=False, ahead_bytes=self.ahead_bytes)
        self.server = Connection(self.limits, self.clock)

    def connect(self) -> World:
        self.link.connected()
        self.exchange()
        return self

    def exchange(self) -> None:
        """Let all bytes pass that may, and tell calls."""
        while True:
            out = self.link.taken()
            for event in events(self.server, out):
                self._receive(event)
            self.server.pump()
            back = self.server.taken()
            if back:
                self.link.received(back)
            self.tell()
            if not out and not back:
                return

    def tell(self) -> None:
        for each in self.link.told():
            each.tell()

    def _receive(self, event: object) -> None:
        if isinstance(event, Opened):
            self.asked[event.stream_id] = Asked(event.head, is_whole=event.is_last)
        elif isinstance(event, Data):
            asked = self.asked[event.stream_id]
            asked.data += event.data
            asked.is_whole = event.is_last
            self.server.consumed(event.stream_id, len(event.data))
        elif isinstance(event, Reset):
            self.asked[event.stream_id].is_reset = True

    def call(self, method: str = "s/M", request: bytes | None = b"ask", **options: object) -> Told:
        """Begin a call."""
        made = Told(method, request, None, **options)  # type: ignore[arg-type]
        self.link.begin(made)
        return made

    def send(self, stream_id: int, *replies: bytes) -> None:
        """Send replies of a response that has begun, or begins."""
        if self.server.queued(stream_id) == 0:
            self.server.send_head(stream_id, RESPONSE_HEAD)
        for each in replies:
            self.server.send_data(stream_id, prefixed(each))

    def answer(self, stream_id: int, replies: Iterable[bytes] = (b"reply",), error: CortadoError | None = None) -> None:
        """Send a whole response, or its end."""
        if error is not None:
            trailers = status_trailers(status_code(error).value[0], status_message(error), trailing_metadata(error))
            self.server.send_end(stream_id, RESPONSE_HEAD + trailers)
        else:
            self.send(stream_id, *replies)
            self.server.send_end(stream_id, OK_TRAILERS)
        self.exchange()
