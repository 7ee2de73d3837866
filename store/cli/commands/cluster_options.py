"""What the commands of ``cortado cluster`` share: the directory and the node that they are about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

DIRECTORY: Final = Path("cortado-cluster")

DirectoryOption: TypeAlias = Annotated[
    Path, typer.Option("--dir", help="The cluster's directory.", metavar="PATH", show_default=str(DIRECTORY))
]
NodeArgument: TypeAlias = Annotated[
    str, typer.Argument(help="The node's id, such as n1.", metavar="NODE", show_default=False)
]
