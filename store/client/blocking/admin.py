"""The operators' calls, synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortado.store.client.admin import AsyncAdmin
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards

if TYPE_CHECKING:
    from cortado.store.client.blocking.auth import Auth
    from cortado.store.client.blocking.backups import Backups
    from cortado.store.client.blocking.cluster import Membership
    from cortado.store.client.blocking.gc import Gc
    from cortado.store.client.blocking.jobs import Jobs
    from cortado.store.client.blocking.quotas import Quotas
    from cortado.store.client.blocking.sizes import Sizes


@forwards(AsyncAdmin)
class Admin:
    """The calls for operators, ``client.admin``."""

    def __init__(self, core: AsyncAdmin) -> None:
        self._core = core

    @property
    def auth(self) -> Auth:
        from cortado.store.client.blocking.auth import Auth

        return Auth(self._core.auth)

    @property
    def sizes(self) -> Sizes:
        from cortado.store.client.blocking.sizes import Sizes

        return Sizes(self._core.sizes)

    @property
    def quotas(self) -> Quotas:
        from cortado.store.client.blocking.quotas import Quotas

        return Quotas(self._core.quotas)

    @property
    def jobs(self) -> Jobs:
        from cortado.store.client.blocking.jobs import Jobs

        return Jobs(self._core.jobs)

    @property
    def backups(self) -> Backups:
        from cortado.store.client.blocking.backups import Backups

        return Backups(self._core.backups)

    @property
    def members(self) -> Membership:
        from cortado.store.client.blocking.cluster import Membership

        return Membership(self._core.members)

    @property
    def gc(self) -> Gc:
        from cortado.store.client.blocking.gc import Gc

        return Gc(self._core.gc)

    def accept_loss(self, key: bytes) -> None:
        """Give up a damaged version if no member has a whole copy."""
        run(self._core.accept_loss(key))

    def bump_epoch(self, from_epoch: int) -> int:
        return run(self._core.bump_epoch(from_epoch))
