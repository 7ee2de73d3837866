"""Quotas, synchronous."""

from __future__ import annotations

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.quotas import AsyncQuotas, QuotaInfo


@forwards(AsyncQuotas)
class Quotas:
    """Limits of the cluster's use. It is ``client.admin.quotas``, and may be shared by threads."""

    def __init__(self, core: AsyncQuotas) -> None:
        self._core = core

    def set(
        self,
        target: str,
        *,
        calls_per_second: int | None = None,
        bytes_per_second: int | None = None,
        stored_bytes: int | None = None,
    ) -> None:
        run(
            self._core.set(
                target,
                calls_per_second=calls_per_second,
                bytes_per_second=bytes_per_second,
                stored_bytes=stored_bytes,
            )
        )

    def remove(self, target: str) -> None:
        run(self._core.remove(target))

    def get(self, target: str) -> QuotaInfo:
        return run(self._core.get(target))

    def all(self) -> list[QuotaInfo]:
        return run(self._core.all())
