"""Compile the scan kernel ahead: ``python -m cortado.store.mvcc.kernel.compiling``.

``make setup`` runs it, and a server whose kernel is not compiled yet runs it as a child process. It ends with 0 if the
kernel can be loaded afterwards, and else with 1 and the reason on standard error.
"""

from __future__ import annotations

import sys

from cortado.store.mvcc.kernel.seam import Unfit, compile_ahead, compiled_folder


def main() -> int:
    try:
        if compiled_folder() is None:
            compile_ahead()
    except Unfit as reason:
        sys.stderr.write(f"no scan kernel: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
