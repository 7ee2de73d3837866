"""``cortado quota``: a quota that is set is shown, and an invalid limit is refused by the option's name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.command_line import CommandLine
from support.memory_engine import MemoryEngine
from support.served_node import served_node


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with served_node(MemoryEngine()) as served:
        yield served.endpoint


@pytest.fixture
def cortado(endpoint: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(endpoint, capfdbinary, monkeypatch)


def test_what_is_set_is_shown_until_it_is_removed(cortado: CommandLine) -> None:
    assert cortado("quota", "set", "database:shop", "--bytes-per-second", "20MiB", "--stored-bytes", "1TiB") == (
        b"set the quota of database:shop\n"
    )
    [told] = cortado.json("quota", "set", "principal:app", "--calls-per-second", "1000000000")
    assert told["calls_per_second"] == 10**9
    shown = cortado.json("quota", "list")
    assert [(each["target"], each["calls_per_second"], each["stored_bytes"], each["refused"]) for each in shown] == [
        ("database:shop", None, 1 << 40, 0),
        ("principal:app", 10**9, None, 0),
    ]
    [told] = cortado.json("quota", "list", "database:shop")
    assert (told["bytes_per_second"], told["stored_bytes"]) == (20 << 20, 1 << 40)
    assert b"20.0 MiB" in cortado("quota", "list")
    # All of it is set: limits that are left out are removed.
    cortado("quota", "set", "database:shop", "--calls-per-second", "5")
    [told] = cortado.json("quota", "list", "database:shop")
    assert (told["calls_per_second"], told["bytes_per_second"], told["stored_bytes"]) == (5, None, None)
    for target in ("database:shop", "principal:app"):
        cortado("quota", "remove", target)
    assert cortado.json("quota", "list") == []
    cortado("quota", "list", "database:shop", expect=3)
    cortado("quota", "remove", "database:shop", expect=3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("database:shop",), "--calls-per-second"),
        *(
            (("database:shop", "--calls-per-second", text), "--calls-per-second")
            for text in ("0", "-1", "1.5", "NaN", "")
        ),
        *(
            (("database:shop", "--bytes-per-second", text), "--bytes-per-second")
            for text in ("0", "-1", "1.5MiB", "2TiB")
        ),
        *((("database:shop", "--stored-bytes", text), "--stored-bytes") for text in ("0", "9" * 30, "1 GiB", "inf")),
        (("principal:app", "--stored-bytes", "1"), "--stored-bytes"),
        (("shop", "--calls-per-second", "1"), "TARGET"),
        (("table:shop.orders", "--calls-per-second", "1"), "TARGET"),
        (("database:a/b", "--calls-per-second", "1"), "TARGET"),
    ],
)
def test_what_is_no_quota_is_refused_by_its_name(cortado: CommandLine, arguments: tuple[str, ...], named: str) -> None:
    cortado("quota", "set", *arguments, expect=2)
    assert named in cortado.err
    assert "Traceback" not in cortado.err
    assert cortado.json("quota", "list") == []
