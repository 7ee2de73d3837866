"""A client's services for operators: each is loaded on first use, since applications need none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face

if TYPE_CHECKING:
    from cortado.store.client.auth import AsyncAuth
    from cortado.store.client.backups import AsyncBackups
    from cortado.store.client.cluster import AsyncMembership
    from cortado.store.client.jobs import AsyncJobs
    from cortado.store.client.quotas import AsyncQuotas
    from cortado.store.client.sizes import AsyncSizes


@public_face
class ClientServices:
    """A part of the client."""

    _connection: Connection
    _timeout_s: float

    @property
    def auth(self) -> AsyncAuth:
        """Roles: principals, their tokens and their rights."""
        from cortado.store.client.auth import AsyncAuth

        return AsyncAuth(self._connection, timeout_s=self._timeout_s)

    @property
    def quotas(self) -> AsyncQuotas:
        """Limits of the use by principals, databases and namespaces."""
        from cortado.store.client.quotas import AsyncQuotas

        return AsyncQuotas(self._connection, timeout_s=self._timeout_s)

    @property
    def sizes(self) -> AsyncSizes:
        """How much tables, indexes and databases have stored."""
        from cortado.store.client.sizes import AsyncSizes

        return AsyncSizes(self._connection, timeout_s=self._timeout_s)

    @property
    def jobs(self) -> AsyncJobs:
        """Long work that the cluster does by itself, such as building indexes."""
        from cortado.store.client.jobs import AsyncJobs

        return AsyncJobs(self._connection, timeout_s=self._timeout_s)

    @property
    def backups(self) -> AsyncBackups:
        """The cluster's calls for backups and restores, which ``cortado.store.backup`` makes."""
        from cortado.store.client.backups import AsyncBackups

        return AsyncBackups(self._connection, timeout_s=self._timeout_s)

    @property
    def membership(self) -> AsyncMembership:
        """The cluster's members, and changes of them."""
        from cortado.store.client.cluster import AsyncMembership

        return AsyncMembership(self._connection, timeout_s=self._timeout_s)
