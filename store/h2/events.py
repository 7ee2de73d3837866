"""The events that a connection hands to its server, or to its client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cortado.store.h2.fields import Head, ResponseFields
from cortado.store.h2.limits import ErrorCode


@dataclass(slots=True)
class Opened:
    """A request has begun; nothing follows its fields if ``is_last``."""

    stream_id: int
    head: Head
    is_last: bool


@dataclass(slots=True)
class Replied:
    """The fields of a response have come, or its trailers."""

    stream_id: int
    fields: ResponseFields
    is_last: bool


@dataclass(slots=True)
class Data:
    """Bytes of a request or a response, none if trailers have ended a request. They count against the windows until
    they are consumed."""

    stream_id: int
    data: bytes
    is_last: bool


@dataclass(slots=True)
class Reset:
    """A stream is over, by its peer or for its fault: nothing can be sent on it."""

    stream_id: int
    code: int


@dataclass(slots=True)
class Drained:
    """Everything that was to be sent on the stream was taken to be written."""

    stream_id: int


@dataclass(slots=True)
class PingAnswered:
    data: bytes


@dataclass(slots=True)
class Going:
    """The server takes no further streams; it says why."""

    code: int


@dataclass(slots=True)
class Ended:
    """The connection is at fault, and GOAWAY says so. Nothing of it is read any more."""

    code: ErrorCode
    problem: str


Event: TypeAlias = Opened | Replied | Data | Reset | Drained | PingAnswered | Going | Ended
