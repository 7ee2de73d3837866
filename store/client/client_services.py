"""What a client has for whoever looks after a cluster: each on first use, since applications need none of it."""

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
        """Roles: principals, their tokens, and what they may do."""
        from cortado.store.client.auth import AsyncAuth

        return AsyncAuth(self._connection, timeout_s=self._timeout_s)

    @property
    def quotas(self) -> AsyncQuotas:
        """What principals, databases and namespaces may use."""
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
        """What backups and restores ask of the cluster; ``cortado.store.backup`` has what they do with it."""
        from cortado.store.client.backups import AsyncBackups

        return AsyncBackups(self._connection, timeout_s=self._timeout_s)

    @property
    def membership(self) -> AsyncMembership:
        """Who belongs to the cluster, and the changes of that."""
        from cortado.store.client.cluster import AsyncMembership

        return AsyncMembership(self._connection, timeout_s=self._timeout_s)
