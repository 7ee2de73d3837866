"""The key-value API, synchronous."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cortado.store.client.blocking.drive import each, run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.blocking.watch import Watch
from cortado.store.client.kv import AsyncKeyValue, KvPair, Operation
from cortado.store.client.values import At, Expires
from cortado.store.client.windows import ChangeWindow


@forwards(AsyncKeyValue)
class KeyValue:
    """One namespace. Made by ``client.kv(namespace)``, and may be shared by threads.

    The namespace of a transaction is this, too. Its writes wait for the commit, and return None.
    """

    def __init__(self, core: AsyncKeyValue) -> None:
        self._core = core
        self.namespace = core.namespace

    def __repr__(self) -> str:
        return repr(self._core).removeprefix("Async")

    def get(self, key: bytes, *, at: At = None, validate: bool = False) -> KvPair | None:
        return run(self._core.get(key, at=at, validate=validate))

    def get_many(self, keys: Sequence[bytes], *, at: At = None) -> list[KvPair | None]:
        return run(self._core.get_many(keys, at=at))

    def put(
        self,
        key: bytes,
        value: bytes,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        if_value: bytes | None = None,
        expires: Expires = None,
    ) -> str:
        return run(
            self._core.put(
                key,
                value,
                if_absent=if_absent,
                if_present=if_present,
                if_etag=if_etag,
                if_value=if_value,
                expires=expires,
            )
        )

    def delete(
        self, key: bytes, *, if_present: bool = False, if_etag: str | None = None, if_value: bytes | None = None
    ) -> bool:
        return run(self._core.delete(key, if_present=if_present, if_etag=if_etag, if_value=if_value))

    def add(self, key: bytes, delta: int, *, min: int | None = None, max: int | None = None) -> int:
        return run(self._core.add(key, delta, min=min, max=max))

    def require(
        self,
        key: bytes,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        if_value: bytes | None = None,
    ) -> None:
        run(self._core.require(key, if_absent=if_absent, if_present=if_present, if_etag=if_etag, if_value=if_value))

    def delete_range(self, start: bytes = b"", end: bytes = b"", *, prefix: bytes | None = None) -> int:
        return run(self._core.delete_range(start, end, prefix=prefix))

    def scan(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
        at: At = None,
        keys_only: bool = False,
    ) -> Iterator[KvPair]:
        core = self._core
        return each(
            core._scan_pages(start, end, prefix=prefix, reverse=reverse, limit=limit, at=at, keys_only=keys_only)
        )

    def watch(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        after: At = None,
        until: At = None,
        initial_state: bool = False,
        with_previous: bool = False,
        resolved_ms: int = 1_000,
    ) -> Watch[bytes, bytes]:
        core = self._core.watch(
            start,
            end,
            prefix=prefix,
            after=after,
            until=until,
            initial_state=initial_state,
            with_previous=with_previous,
            resolved_ms=resolved_ms,
        )
        return Watch(core)

    def progress(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        after: At = None,
        until: At = None,
        resolved_ms: int = 1_000,
    ) -> Watch[bytes, bytes]:
        core = self._core
        return Watch(core.progress(start, end, prefix=prefix, after=after, until=until, resolved_ms=resolved_ms))

    def window(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        after: At,
        until: At = None,
        changes_max: int | None = None,
        bytes_max: int | None = None,
        parts: int = 1,
    ) -> ChangeWindow[bytes]:
        bounds = {"changes_max": changes_max, "bytes_max": bytes_max}
        return run(self._core.window(start, end, after=after, until=until, parts=parts, **bounds))

    def batch(self, operations: Sequence[Operation]) -> str:
        return run(self._core.batch(operations))
