"""``cortado.v1.Settings``: the settings of this node at its start, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from cortado.proto.v1 import settings_pb2
from cortado.store.host.host import Host
from cortado.store.server.service import Service
from cortado.store.settings.gather import Found


class SettingsService(Service):
    """Answers at any node, of that node alone."""

    def __init__(self, host: Host, found: Sequence[Found]) -> None:
        super().__init__(host)
        self._settings = [_message(each) for each in found]

    async def list_settings(self, _request: settings_pb2.ListSettingsRequest) -> Message:
        return settings_pb2.ListSettingsResponse(header=self.header(self.host.meta.read_ts()), settings=self._settings)


def _message(found: Found) -> settings_pb2.Setting:
    described = found.described()
    return settings_pb2.Setting(default_value=described.pop("default"), **described)
