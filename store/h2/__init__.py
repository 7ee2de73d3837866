"""HTTP/2 (RFC 9113) as a server and a client speak it, with gRPC's framing: bytes in, events and bytes out, and no I/O.

::

    bytes ─► frames.py ─► incoming.py ─► events: Opened or Replied, Data, Reset, Drained, PingAnswered, Going, Ended
                           │   ▲   states.py: the transitions of a stream, as a table
                           │   `── header_blocks.py ─► fields.py: HPACK (RFC 7541), and the checks of fields
                           ▼
                          outgoing.py ─► bytes to send: as far as flow control allows, in turn over the streams

    connection.py: a server's side of both; client.py: a client's side
    grpc.py: messages in the bytes of a stream, status and deadline in its fields

Every limit is in :mod:`~cortado.store.h2.limits`, with the error code of RFC 9113 that a peer gets beyond it. A stream
that is at fault is reset; a connection that is at fault ends with GOAWAY. Nothing else is raised.

Time comes in by the door: a connection is made with a clock, which its budgets refill by.

Not here: server push, CONNECT, priorities (they are read and ignored), and the content of requests' trailers.
"""
