"""How much work a piece of code does, in instructions of the interpreter: as many on a busy machine as on an idle one.

A test that bounds work never looks at a clock: a clock depends on the other work of the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def instructions_at_most(most: int) -> Iterator[None]:
    """Run the block with at most ``most`` bytecode instructions in this thread; fail as soon as it has run more.

    Loops inside compiled functions (``in`` of a tuple, ``sorted``) count as one instruction.
    """
    done = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal done
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            done += 1
            if done > most:
                raise AssertionError(f"more than {most:,} instructions")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
    assert done, "nothing of the block was counted"
