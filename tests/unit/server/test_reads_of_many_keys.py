"""The size of a reply to many keys, by the time that it takes to read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.server import documents_service, kv_service
from cortado.store.server.service import SLICE_MS_MAX

KEYS = 100
TS = Timestamp(0, 1_000, 0)


class SlowKeys:
    """``get_many`` of either service: to work the keys out takes longer than a slice, to read each a tenth of one."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self, _reader: Any, _of: Any, keys: Any) -> Any:
        self.now_ms += 5 * SLICE_MS_MAX
        return map(self._read, keys)

    def _read(self, _key: Any) -> None:
        self.now_ms += SLICE_MS_MAX / 10


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowKeys:
    keys = SlowKeys()
    monkeypatch.setattr(documents_service, "get_many", keys)
    monkeypatch.setattr(kv_service, "get_many", keys)
    monkeypatch.setattr(documents_service, "check_form", lambda *_: None)
    return keys


def host(slow: SlowKeys) -> Any:
    identity = SimpleNamespace(cluster_id="c", node_id="n")
    process = SimpleNamespace(identity=identity, monotonic_ms=lambda: slow.now_ms)
    return SimpleNamespace(process=process, meta=SimpleNamespace(term=1, group_id=1))


@pytest.mark.parametrize("kind", ["documents", "pairs"])
def test_the_time_of_a_reply_is_for_what_it_returns_and_not_for_working_out_the_keys(slow: SlowKeys, kind: str) -> None:
    """Each request names all keys that are left: else it would take as long again for each one that came back."""
    if kind == "documents":
        documents = documents_service.DocumentsService(host(slow))
        asked = documents_pb2.MultiGetRequest(keys=[common_pb2.Key()] * KEYS, may_stop_early=True)
        view: Any = SimpleNamespace(table=SimpleNamespace(key=()))
        count = len(documents._multi_get(asked, view, None, TS).found)  # type: ignore[arg-type]
    else:
        pairs = kv_service.KeyValueService(host(slow))
        wanted = kv_pb2.KvMultiGetRequest(namespace="n", keys=[b"k"] * KEYS, may_stop_early=True)
        count = len(pairs._multi_get(wanted, None, TS).pairs)  # type: ignore[arg-type]
    assert 9 <= count <= 11
