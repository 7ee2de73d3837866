"""The scan kernel's demands on the machine, beside the same in Python."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cortado.store.mvcc.versions import checksum

machine = pytest.importorskip("cortado.store.mvcc.kernel.machine", reason="nothing compiles the scan kernel here")


def address(data: bytes) -> tuple[np.ndarray, int]:
    held = np.frombuffer(data + b"\0" * 8, np.uint8)
    return held, held.ctypes.data


@pytest.mark.parametrize("by", ["tables", "processor"])
def test_checksums_are_those_of_the_library(by: str) -> None:
    if by == "processor" and not machine.HAS_CRC:
        pytest.skip("this processor has no instruction for it")
    crc, draw = getattr(machine, f"crc_by_{by}"), Random(1)
    for size in [*range(40), 1_000, 70_001]:
        data = draw.randbytes(size)
        held, start = address(data)
        assert int(crc(machine.REGISTER, start, size)) ^ 0xFFFFFFFF == checksum(data)
        middle = size // 3
        halves = crc(crc(machine.REGISTER, start, middle), start + middle, size - middle)
        assert int(halves) ^ 0xFFFFFFFF == checksum(data)
        del held


def test_bytes_are_compared_as_python_compares_them() -> None:
    draw = Random(2)
    for _ in range(2_000):
        common = draw.randbytes(draw.randrange(20))
        left, right = common + draw.randbytes(draw.randrange(12)), common + draw.randbytes(draw.randrange(12))
        (one, left_at), (other, right_at) = address(left), address(right)
        found = machine.compare(left_at, len(left), right_at, len(right))
        assert (found > 0) - (found < 0) == (left > right) - (left < right)
        del one, other
