"""A node that is not there is told of in our words, whoever asks it alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cortado.errors import Unavailable
from cortado.store.client.inspect import NodeInspector
from cortado.store.client.statistics import NodeStatistics


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that refuses connections, and is nobody else's meanwhile: bound, and not listened on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_its_statistics_say_that_nothing_listens(nobody: str) -> None:
    with NodeStatistics(nobody, timeout_s=5.0) as statistics, pytest.raises(Unavailable) as found:
        statistics.read()
    assert found.value.message() == "nothing listens there"


def test_an_inspection_says_that_nothing_listens_and_where(nobody: str) -> None:
    with pytest.raises(Unavailable) as found:
        NodeInspector([nobody], timeout_s=5.0)
    assert found.value.message() == f"{nobody}: nothing listens there"
