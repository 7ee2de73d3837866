"""The extras of the distribution, and the one error where an installation lacks one.

The base installation is the client and the command line. Whatever needs more stands in ``with needing(...)``, so that
each such error names the extra and the command that installs it, in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cortado.errors import Unsupported

DISTRIBUTION: Final = "cortadodb"
"""What ``pip`` installs. It is imported as ``cortado``."""

_OURS: Final = ("cortado", "pyspark_cortado")


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Around the imports that ``what`` needs an extra for.

    Raises Unsupported where a package behind the extra is missing; the import's own error is its cause.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _OURS:
            raise
        command = f"pip install '{DISTRIBUTION}[{extra}]'"
        raise Unsupported(f"{what} without the extra [{extra}]", command) from error
