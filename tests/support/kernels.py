"""The scan kernel, for tests: from where it lies compiled, or compiled now."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from cortado.store.mvcc.kernel.seam import Unfit, check_machine, compile_ahead, compiled_folder, load

if TYPE_CHECKING:
    from cortado.store.mvcc.kernel.scanning import RowKernel
    from cortado.store.mvcc.walks import ColumnKernel


@cache
def row_kernel() -> RowKernel:
    """Return the compiled kernel. Skips the test if no compiler for it is there."""
    try:
        check_machine()
    except Unfit as reason:
        pytest.skip(f"no scan kernel: {reason}")
    return load(compiled_folder() or compile_ahead())


@cache
def column_kernels() -> list[ColumnKernel | None]:
    """Return None, for the way without it, and the compiled kernel, if its compiler is there."""
    try:
        check_machine()
    except Unfit:
        return [None]
    row_kernel()
    from cortado.store.mvcc.kernel.walking import CompiledColumns

    return [None, CompiledColumns()]
