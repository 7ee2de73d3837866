"""The bytes of quotas on disk. A change here is a change of format: see docs/formats/quotas.md."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss
from cortado.store.mvcc.archive import is_archived
from cortado.store.quotas.quota import Quota, Target
from cortado.store.quotas.stored import QUOTAS_KEY, decode_quotas, encode_quotas

OF_SHOP = Quota(Target("database:shop"), stored_bytes=1 << 30)
OF_APP = Quota(Target("principal:app"), calls_per_second=200, bytes_per_second=1_000)


def test_the_key() -> None:
    assert QUOTAS_KEY == b"m\x30quotas\x00\x01\x01"
    # It is of one cluster: no backup has it.
    assert not is_archived(QUOTAS_KEY)


def test_the_value() -> None:
    assert encode_quotas([]) == b""
    of_shop = b"\x0a\x0ddatabase:shop\x20\x80\x80\x80\x80\x04"
    of_app = b"\x0a\x0dprincipal:app\x10\xc8\x01\x18\xe8\x07"
    expected = b"\x0a" + bytes([len(of_shop)]) + of_shop + b"\x0a" + bytes([len(of_app)]) + of_app
    assert encode_quotas([OF_APP, OF_SHOP]) == expected
    assert list(decode_quotas(expected).items()) == [(each.target, each) for each in (OF_SHOP, OF_APP)]


def test_what_is_no_value_is_damage() -> None:
    with pytest.raises(DataLoss):
        decode_quotas(b"\xff\xff")
