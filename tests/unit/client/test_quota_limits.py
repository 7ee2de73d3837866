"""An invalid limit of a quota is refused before any message is sent, in the words of a node."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.store.client import Client
from cortado.store.quotas.limits import BYTES_PER_SECOND_MAX, CALLS_PER_SECOND_MAX, STORED_BYTES_MAX
from cortado.store.quotas.quota import Quota, Target


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("calls_per_second", CALLS_PER_SECOND_MAX + 1),
        ("bytes_per_second", BYTES_PER_SECOND_MAX + 1),
        ("stored_bytes", STORED_BYTES_MAX + 1),
        ("stored_bytes", 0),
    ],
)
def test_the_client_refuses_what_a_node_would_by_the_same_words(field: str, value: int) -> None:
    limits = {field: value}
    with pytest.raises(InvalidArgument) as of_node:
        Quota(Target("database:shop"), **limits).check()
    with Client("127.0.0.1:1", timeout_s=0.1) as client, pytest.raises(InvalidArgument) as of_client:
        client.admin.quotas.set("database:shop", **limits)
    assert str(of_client.value) == str(of_node.value)
    assert of_client.value.field == field
