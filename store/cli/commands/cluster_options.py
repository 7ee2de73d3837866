"""What the commands of ``cortado cluster`` share: the directory and the node that they are about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cortado.store.cli.options import Argument, Option

DIRECTORY: Final = Path("cortado-cluster")

DirectoryOption: TypeAlias = Annotated[
    Path, Option("--dir", help="The cluster's directory.", metavar="PATH", show_default=str(DIRECTORY))
]
NodeArgument: TypeAlias = Annotated[str, Argument(help="The node's id, such as n1.", metavar="NODE")]
