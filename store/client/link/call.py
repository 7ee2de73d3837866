"""A call on a link, as its caller and the link see it."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from cortado.errors import Internal
from cortado.store.client.authorization import Metadata
from cortado.store.client.retry import Failed, Failure
from cortado.store.h2.grpc import PREFIX_BYTES, Messages
from cortado.store.h2.limits import WINDOW_MAX

REPLY_BYTES_MAX: Final = WINDOW_MAX - PREFIX_BYTES
"""Protobuf reads no larger ones."""


class Call:
    """``request`` is the only message of a call; None if messages are sent one by one. ``deadline_s`` is by the link's
    clock."""

    __slots__ = (
        "deadline_s",
        "failure",
        "is_awaited",
        "is_eager",
        "is_over",
        "is_sent",
        "messages",
        "metadata",
        "path",
        "replies",
        "request",
        "stream_id",
    )

    def __init__(
        self,
        method: str,
        request: bytes | None,
        metadata: Metadata | None,
        *,
        deadline_s: float = math.inf,
        is_eager: bool = True,
    ) -> None:
        self.path = method
        self.request = request
        self.metadata = metadata
        self.deadline_s = deadline_s
        self.is_eager = is_eager
        self.is_awaited = False
        """Its caller waits for the next reply, if it is not eager."""
        self.replies: deque[bytes] = deque()
        self.messages = Messages(REPLY_BYTES_MAX)
        """The bytes that are no reply yet."""
        self.stream_id = 0
        """Of the connection; none before it is open."""
        self.is_sent = False
        """Its beginning was taken to be written."""
        self.is_over = False
        self.failure: Failure | None = None

    def outcome(self) -> bytes:
        """Return the only reply of a call that is over. Raises Failed."""
        if self.failure is not None:
            raise Failed(self.failure)
        if not self.replies:
            raise Failed(Failure(Internal(f"the server sent no reply of {self.path}"), answered=False, sent=True))
        return self.replies[0]

    def tell(self) -> None:
        """Look at ``replies``, ``is_over``, and whether the link has room for the next message."""
        raise NotImplementedError
