"""A detached supervisor, as ``cortado dev up --detach`` starts it: its directory is the only argument.

It finds the plan there. Its standard output is a file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cortado.errors import CortadoError
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.local_cluster.prepare import connect
from cortado.store.local_cluster.supervisor import Supervisor, say_on_stdout


def main() -> int:
    """Run until it is told to stop; return the exit code."""
    files = ClusterFiles(Path(sys.argv[1]))
    try:
        with files.locked():
            Supervisor(files, files.read_plan(), lambda plan: connect(files, plan), say_on_stdout).run()
            return 0
    except CortadoError as error:
        say_on_stdout(f"error: {error.message()}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
