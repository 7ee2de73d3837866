"""The transitions of a stream (RFC 9113 §5.1), as a table. A server pushes nothing, so no stream is reserved.

::

                              ┌──────┐
                              │ idle │
                              └──┬───┘
                                 │ HEADERS
                              ┌──▼───┐
            END_STREAM ┌──────┤ open ├──────┐ END_STREAM
             received  │      └──┬───┘      │ sent
        ┌──────────────▼┐        │ RST_     ├▼──────────────┐
        │  half-closed  │        │ STREAM,  │  half-closed  │
        │   (remote)    │        │ either   │    (local)    │
        └──────────────┬┘        │          └┬──────────────┘
            END_STREAM │      ┌──▼─────┐     │ END_STREAM
               sent    └──────► closed ◄─────┘  received
                              └────────┘

If a pair stands neither in :data:`NEXT` nor in :data:`FAULTS`, this side never makes that event happen.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from cortado.store.h2.limits import ConnectionFault, ErrorCode, StreamFault


class State(Enum):
    IDLE = auto()
    OPEN = auto()
    HALF_CLOSED_REMOTE = auto()
    HALF_CLOSED_LOCAL = auto()
    CLOSED = auto()

    # Members are looked up for each frame: by identity, as they compare.
    __hash__ = object.__hash__


class Event(Enum):
    HEADERS = auto()
    DATA = auto()
    END = auto()
    """END_STREAM, behind the HEADERS or DATA that it came with."""
    RESET = auto()
    WINDOW = auto()
    SENT = auto()
    """HEADERS or DATA that this side has sent."""
    SENT_END = auto()
    SENT_RESET = auto()

    __hash__ = object.__hash__


_IDLE, _OPEN, _REMOTE, _LOCAL, _CLOSED = State

NEXT: Final[dict[tuple[State, Event], State]] = {
    (_IDLE, Event.HEADERS): _OPEN,
    (_OPEN, Event.HEADERS): _OPEN,
    (_OPEN, Event.DATA): _OPEN,
    (_OPEN, Event.END): _REMOTE,
    (_OPEN, Event.RESET): _CLOSED,
    (_OPEN, Event.WINDOW): _OPEN,
    (_OPEN, Event.SENT): _OPEN,
    (_OPEN, Event.SENT_END): _LOCAL,
    (_OPEN, Event.SENT_RESET): _CLOSED,
    (_REMOTE, Event.RESET): _CLOSED,
    (_REMOTE, Event.WINDOW): _REMOTE,
    (_REMOTE, Event.SENT): _REMOTE,
    (_REMOTE, Event.SENT_END): _CLOSED,
    (_REMOTE, Event.SENT_RESET): _CLOSED,
    (_LOCAL, Event.HEADERS): _LOCAL,
    (_LOCAL, Event.DATA): _LOCAL,
    (_LOCAL, Event.END): _CLOSED,
    (_LOCAL, Event.RESET): _CLOSED,
    (_LOCAL, Event.WINDOW): _LOCAL,
    (_LOCAL, Event.SENT_RESET): _CLOSED,
    # They may have been under way when the stream was closed.
    (_CLOSED, Event.RESET): _CLOSED,
    (_CLOSED, Event.WINDOW): _CLOSED,
}

FAULTS: Final[dict[tuple[State, Event], type[ConnectionFault | StreamFault]]] = {
    (_IDLE, Event.DATA): ConnectionFault,
    (_IDLE, Event.RESET): ConnectionFault,
    (_IDLE, Event.WINDOW): ConnectionFault,
    (_REMOTE, Event.HEADERS): StreamFault,
    (_REMOTE, Event.DATA): StreamFault,
    (_CLOSED, Event.HEADERS): ConnectionFault,
    (_CLOSED, Event.DATA): ConnectionFault,
}


def next_state(state: State, event: Event) -> State:
    """Return the state after ``event``. Raises ConnectionFault or StreamFault if a peer must not cause it."""
    found = NEXT.get((state, event))
    if found is not None:
        return found
    code = ErrorCode.PROTOCOL_ERROR if state is _IDLE else ErrorCode.STREAM_CLOSED
    raise FAULTS[state, event](code, f"{event.name} on a stream that is {state.name.lower().replace('_', ' ')}")
