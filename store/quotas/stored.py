"""The stored form of all quotas (``docs/formats/quotas.md``): one value, under the key ``quotas`` in the space ``m``.

They concern one cluster alone: no backup has them, and a restore leaves them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cortado.proto.internal import quotas_pb2 as pb
from cortado.store.keys.keyspace import meta_key
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.stored_messages import decode_stored, encode_stored
from cortado.store.quotas.quota import Quota, Target

QUOTAS_KEY: Final = meta_key("quotas")


def encode_quotas(quotas: Iterable[Quota]) -> bytes:
    ascending = sorted(quotas, key=lambda each: each.target)
    stored = pb.StoredQuotas(
        quotas=[
            pb.StoredQuota(
                target=each.target,
                calls_per_second=each.calls_per_second or 0,
                bytes_per_second=each.bytes_per_second or 0,
                stored_bytes=each.stored_bytes or 0,
            )
            for each in ascending
        ]
    )
    return encode_stored(stored)


def decode_quotas(payload: bytes) -> dict[Target, Quota]:
    """By target, ascending. Raises DataLoss."""
    stored = decode_stored(pb.StoredQuotas, payload, "quotas")
    return {
        Target(each.target): Quota(
            Target(each.target),
            each.calls_per_second or None,
            each.bytes_per_second or None,
            each.stored_bytes or None,
        )
        for each in stored.quotas
    }


def quotas_of(reader: Reader) -> Mapping[Target, Quota]:
    """Return all that there are, by target. Raises DataLoss."""
    version = reader.get(QUOTAS_KEY)
    return {} if version is None else decode_quotas(version.payload)
