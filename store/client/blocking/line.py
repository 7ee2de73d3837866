"""One connection with threads: a link, its lock, and its socket.

The thread that has the lock works on the link, and writes the bytes that follow. Without the lock it then tells the
calls that have news. If the socket takes no more, the I/O thread writes the rest.

The lock is taken by nothing but ``with``, so that Ctrl-C in the main thread leaves it free.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Final, TypeVar

from cortado.errors import InvalidArgument
from cortado.store.client.blocking.io_thread import IoThread
from cortado.store.client.endpoints import Tls
from cortado.store.client.link import ends
from cortado.store.client.link.call import Call
from cortado.store.client.link.link import CONNECT_S, Link

T = TypeVar("T")

READ_BYTES: Final = 64 << 10
AHEAD_BYTES: Final = 4 << 20
"""So much of a stream's data may come before it is read: a distant reader is as fast as this in each round trip."""


class Line:
    """A connection to ``address``, which begins to connect at once."""

    def __init__(self, address: str, tls: Tls | None, io: IoThread) -> None:
        self.link = Link(address, io.now_s, is_encrypted=tls is not None, ahead_bytes=AHEAD_BYTES)
        self._address = address
        self._files = tls
        self.io = io
        self.now_s = io.now_s
        self._lock = threading.Lock()
        self._looked_s = math.inf
        self._addresses: deque[Any] = deque()
        self._share_s = CONNECT_S
        self._attempt_until_s = math.inf
        self._trying: socket.socket | None = None
        self._socket: socket.socket | None = None
        """It is connected, and was not let go."""
        self._unwritten: bytes | memoryview = b""
        self._is_stuck = False
        self._is_leaving = False
        self._timers: dict[Callable[[], None], float] = {}
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._has_shaken_hands = False
        io.post(self._begin)

    @property
    def _host(self) -> str:
        return self._address.rpartition(":")[0].strip("[]")

    # --- for any thread ----------------------------------------------------------------------------------------

    def do(self, work: Callable[[], T]) -> T:
        """Do ``work`` on the link under the lock, write, and tell the calls with news."""
        with self._lock:
            result = work()
            self._write()
            news = self.link.told()
            if self.link.is_over and not self._is_leaving:
                self._is_leaving = True
                self.io.post(self.let_go)
            look_s = self.link.look_s
            is_earlier, self._looked_s = look_s < self._looked_s, look_s
        if is_earlier:
            self.io.look_at(look_s)
        for call in news:
            call.tell()
        return result

    def do_later(self, work: Callable[[], object]) -> None:
        """Let the I/O thread do ``work``. It takes no lock of the line's."""
        self.io.post(partial(self.do, work))

    def begin(self, call: Call) -> None:
        self.do(partial(self.link.begin, call))

    def cancel(self, call: Call) -> bool:
        """End a call for its caller, who is not told. False if it has ended."""
        return self.do(partial(self.link.cancel, call))

    def close(self) -> None:
        """End the connection, and all calls."""
        self.do(self.link.close)

    def set_timer(self, look: Callable[[], None], look_s: float) -> None:
        """Call ``look`` in the I/O thread at ``look_s``."""
        self._timers[look] = look_s
        self.io.look_at(look_s)

    def drop_timer(self, look: Callable[[], None]) -> None:
        self._timers.pop(look, None)

    def _write(self) -> None:
        sock = self._socket
        while sock is not None and not self._is_stuck:
            try:
                out = self._unwritten or self._next_bytes()
                if not out:
                    return
                count = sock.send(out)
            except BlockingIOError:
                count = 0
            except OSError as error:
                self.link.lost(ends.unreached(error))
                return
            self._unwritten = b"" if count == len(out) else memoryview(out)[count:]
            if self._unwritten:
                self._is_stuck = True
                self.io.post(self._wait_for_room)

    def _next_bytes(self) -> bytes:
        out = self.link.taken()
        if self._tls is None:
            return out
        if out:
            self._tls.write(out)
        return self._outgoing.read()

    # --- the I/O thread: the socket ----------------------------------------------------------------------------

    def _wait_for_room(self) -> None:
        if self._socket is not None:
            self.io.selector.modify(self._socket, EVENT_READ | EVENT_WRITE, (self, self._ready))

    def _ready(self, mask: int) -> None:
        sock = self._socket
        if sock is None:
            return
        if mask & EVENT_WRITE:
            self.io.selector.modify(sock, EVENT_READ, (self, self._ready))
        data, problem = b"", ""
        if mask & EVENT_READ:
            try:
                data = sock.recv(READ_BYTES)
                problem = "" if data else ends.CLOSED
            except BlockingIOError:
                pass
            except OSError as error:
                problem = ends.unreached(error)
        self.do(partial(self._happened, data, problem, has_room=bool(mask & EVENT_WRITE)))

    def _happened(self, data: bytes, problem: str, *, has_room: bool) -> None:
        self._is_stuck = self._is_stuck and not has_room
        if problem:
            self.link.lost(problem)
        elif data and self._tls is None:
            self.link.received(data)
        elif data and self._tls is not None:
            self._decrypt(self._tls, data)

    def _decrypt(self, tls: ssl.SSLObject, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if not self._has_shaken_hands:
                self._shake_hands(tls)
            while self._has_shaken_hands and (plain := tls.read(READ_BYTES)):
                self.link.received(plain)
            self.link.lost(ends.CLOSED)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.link.lost(ends.unreached(error))

    def _shake_hands(self, tls: ssl.SSLObject) -> None:
        tls.do_handshake()
        if tls.selected_alpn_protocol() != "h2":
            self.link.lost(ends.STRANGER)
            return
        self._has_shaken_hands = True
        self.link.connected()

    def let_go(self) -> None:
        """Close the socket."""
        with self._lock:
            socks, self._socket, self._trying = (self._socket, self._trying), None, None
        self.io.watched.discard(self)
        for sock in socks:
            if sock is not None:
                self.io.selector.unregister(sock)
                sock.close()

    def failed(self, defect: Exception) -> None:
        """End the connection for a defect of ours."""
        self.do(partial(self.link.lost, f"reading replies: {defect!r}"))

    # --- the I/O thread: time ----------------------------------------------------------------------------------

    @property
    def look_s(self) -> float:
        """When :meth:`look` is to be called."""
        return min(self.link.look_s, self._attempt_until_s, *self._timers.values())

    def look(self) -> None:
        """End late calls, and a late attempt to connect."""
        now_s = self.io.now_s()
        for look, look_s in list(self._timers.items()):
            if look_s <= now_s:
                del self._timers[look]
                look()
        if self._attempt_until_s <= now_s:
            self._try_next(TimeoutError())
        if self.link.look_s <= now_s:
            self.do(self.link.look)

    # --- the I/O thread: connecting ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self.io.watched.add(self)
        try:
            if self._files is not None:
                self._tls = self._files.context().wrap_bio(self._incoming, self._outgoing, server_hostname=self._host)
        except InvalidArgument as problem:
            self.do(partial(self.link.lost, problem.message()))
            return
        port = int(self._address.rpartition(":")[2])
        try:
            self._connect(socket.getaddrinfo(self._host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
        except socket.gaierror:
            # The lookup of a name may take long, and cannot be interrupted.
            threading.Thread(target=self._look_up, args=(port,), name="cortado-lookup", daemon=True).start()

    def _look_up(self, port: int) -> None:
        try:
            found = socket.getaddrinfo(self._host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            self.io.post(partial(self._try_next, error))
        else:
            self.io.post(partial(self._connect, found))

    def _connect(self, found: list[Any]) -> None:
        self._addresses.extend(found)
        self._share_s = CONNECT_S / len(found)
        self._try_next(OSError())

    def _try_next(self, problem: Exception) -> None:
        """Try the next address, after ``problem`` with the last one."""
        if self._trying is not None:
            self.io.selector.unregister(self._trying)
            self._trying.close()
            self._trying = None
        self._attempt_until_s = math.inf
        if self.link.is_over:
            return
        if not self._addresses:
            self.do(partial(self.link.lost, ends.unreached(problem)))
            return
        family, kind, protocol, _, address = self._addresses.popleft()
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:
            self._try_next(error)
            return
        sock.setblocking(False)
        code = sock.connect_ex(address)
        self._trying = sock
        self.io.selector.register(sock, EVENT_WRITE, (self, self._reached))
        self._attempt_until_s = self.io.now_s() + self._share_s
        if code not in (0, errno.EINPROGRESS):
            self._try_next(OSError(code, os.strerror(code)))

    def _reached(self, _mask: int) -> None:
        """Take the end of an attempt to connect."""
        sock = self._trying
        if sock is None:
            return
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._try_next(OSError(code, os.strerror(code)))
            return
        self._attempt_until_s = math.inf
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.io.selector.modify(sock, EVENT_READ, (self, self._ready))
        self.do(partial(self._connected, sock))

    def _connected(self, sock: socket.socket) -> None:
        self._trying, self._socket = None, sock
        if self._tls is None:
            self.link.connected()
        else:
            self._decrypt(self._tls, b"")
