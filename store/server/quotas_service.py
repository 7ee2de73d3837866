"""``cortado.v1.Quotas``: the quotas of principals, databases and namespaces, and their use at this node."""

from __future__ import annotations

from operator import attrgetter

from google.protobuf.message import Message

from cortado.errors import NotFound
from cortado.proto.v1 import quotas_pb2 as pb
from cortado.store.host.host import Host
from cortado.store.quotas import changes
from cortado.store.quotas.quota import Quota, Target, check_target
from cortado.store.quotas.stored import quotas_of
from cortado.store.server.listing import behind, next_page
from cortado.store.server.metering import Metering
from cortado.store.server.service import Service


class QuotasService(Service):
    """No quota refuses a call of this service: an admin can raise a quota that is used up."""

    def __init__(self, host: Host, metering: Metering) -> None:
        super().__init__(host)
        self._metering = metering

    async def set(self, request: pb.SetQuotaRequest) -> bytes:
        quota = Quota(
            Target(request.target),
            request.calls_per_second or None,
            request.bytes_per_second or None,
            request.stored_bytes or None,
        )
        return await self.change(request, changes.set_quota(quota), object, lambda _: pb.SetQuotaResponse())

    async def remove(self, request: pb.RemoveQuotaRequest) -> bytes:
        evaluate = changes.remove_quota(request.target)
        return await self.change(request, evaluate, object, lambda _: pb.RemoveQuotaResponse())

    async def get(self, request: pb.GetQuotaRequest) -> Message:
        target = check_target(request.target)
        read_ts = await self.newest()
        quota = quotas_of(self.host.meta.reader(read_ts)).get(target)
        if quota is None:
            raise NotFound("quota", target)
        return pb.GetQuotaResponse(header=self.header(read_ts), quota=self._state(quota))

    async def list(self, request: pb.ListQuotasRequest) -> Message:
        with self.host.process.reads.place():
            read_ts, quotas, token = next_page(
                request,
                newest=await self.newest(),
                items=lambda ts, after: behind(
                    after, quotas_of(self.host.meta.reader(ts)).values(), attrgetter("target")
                ),
                name=attrgetter("target"),
            )
        found = [self._state(each) for each in quotas]
        return pb.ListQuotasResponse(header=self.header(read_ts), quotas=found, next_page_token=token)

    def _state(self, quota: Quota) -> pb.QuotaState:
        """Return a quota with its use at this node, which learns of new quotas a moment later."""
        told = pb.Quota(
            target=quota.target,
            calls_per_second=quota.calls_per_second or 0,
            bytes_per_second=quota.bytes_per_second or 0,
            stored_bytes=quota.stored_bytes or 0,
        )
        meter = self._metering.meters.by_target.get(quota.target)
        if meter is None:
            return pb.QuotaState(quota=told)
        used_bytes = None if quota.stored_bytes is None else meter.used_bytes
        return pb.QuotaState(quota=told, used_bytes=used_bytes, refused=meter.refused)
