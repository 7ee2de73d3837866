"""The operators' calls of a client: each part is loaded on first use, since applications need none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cortado.errors import InvalidArgument
from cortado.proto.v1 import cluster_pb2
from cortado.store.client.arguments import whole
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face

if TYPE_CHECKING:
    from cortado.store.client.auth import AsyncAuth
    from cortado.store.client.backups import AsyncBackups
    from cortado.store.client.cluster import AsyncMembership
    from cortado.store.client.gc import AsyncGc
    from cortado.store.client.jobs import AsyncJobs
    from cortado.store.client.quotas import AsyncQuotas
    from cortado.store.client.sizes import AsyncSizes

_EPOCH_MAX: Final = (1 << 16) - 1


@public_face
class AsyncAdmin:
    """The calls for operators, ``client.admin``."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

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
    def members(self) -> AsyncMembership:
        """The cluster's members, and changes of them."""
        from cortado.store.client.cluster import AsyncMembership

        return AsyncMembership(self._connection, timeout_s=self._timeout_s)

    @property
    def gc(self) -> AsyncGc:
        """Garbage collection, and the holds that it waits for."""
        from cortado.store.client.gc import AsyncGc

        return AsyncGc(self._connection, timeout_s=self._timeout_s)

    async def accept_loss(self, key: bytes) -> None:
        """Give up the damaged version under this stored key (:attr:`DamagedItem.key`) if no member has a whole copy:
        from its timestamp on the key does not exist, on every replica.

        Raises InvalidArgument if it is not damaged, Unavailable if not every member has confirmed that.
        """
        if not isinstance(key, bytes):
            raise InvalidArgument("key", "must be bytes", type(key).__name__)
        request = cluster_pb2.AcceptLossRequest(key=key)
        stub = self._connection.stubs.cluster
        await self._connection.write(stub.AcceptLoss, request, timeout_s=self._timeout_s)

    async def bump_epoch(self, from_epoch: int) -> int:
        """Begin a new epoch, after which every timestamp sorts after every earlier one; return it.

        Raises InvalidArgument if the epoch is not ``from_epoch`` any more.
        """
        request = cluster_pb2.BumpEpochRequest(from_epoch=whole(from_epoch, "from_epoch", 0, _EPOCH_MAX))
        stub = self._connection.stubs.cluster
        epoch: int = (await self._connection.write(stub.BumpEpoch, request, timeout_s=self._timeout_s)).epoch
        return epoch
