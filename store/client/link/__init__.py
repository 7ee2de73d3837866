"""Calls over one connection of HTTP/2, for both faces: no I/O, no loop, no threads, no locks.

::

    callers ── begin, send, read, cancel ──►  Link  ◄── connected, received, lost, look ── the driver's socket and timer
                                               │ ──► taken(): bytes to write, of all calls since the last time
                                               `───► told(): calls with news; the driver calls ``tell`` of each

A :class:`~.link.Link` is one connection from the first attempt to connect until its end, and never connects again. A
wire makes one when a call comes and the last one does not :meth:`~.link.Link.takes_calls`. Calls that come before the
server has said its settings wait, and so do those beyond its bound of streams.

**The driver's duties.** It begins to connect as soon as it has made a link, and says so by ``connected`` (TCP and
TLS stand), ``received`` (bytes), and ``lost`` (why there is no connection, or none any more: :func:`~.ends.unreached`,
:data:`~.ends.CLOSED`). After anything that it or a caller did, it writes ``taken()`` until that is empty or the socket
takes no more, and calls ``tell`` of each call in ``told()``. It calls ``look`` at ``look_s``, which calls and their
ends bring forward. If the link ``is_over``, it writes the rest and closes the socket.

**A call** (:class:`~.call.Call`) is subclassed by the driver, for its ``tell``. An *eager* one takes its replies as
they come, into ``replies``. Of another one ``read`` takes each, and at most ``ahead_bytes`` come before that.
``is_over`` comes behind all replies, and ``failure`` then tells how it ended: None is a success. ``failure.sent`` is
exact: False if nothing was taken to be written, and if the server has said that it began nothing.

A driver with threads holds one lock around each method of a link and around ``replies``, and none around ``tell``.
"""
