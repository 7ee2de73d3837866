"""Callers in a process of their own, of the build that PYTHONPATH names: ``ENDPOINTS NAME``.

Writes how many writes were acknowledged, a line for every line that it reads, after that number of further writes. At
the end of its input it stops, checks the answers of its callers, and writes a line for each outcome that stayed
unknown.
"""

from __future__ import annotations

import sys

from cortado.store.client import Client
from support.callers import calling


def main(endpoints: str, name: str) -> None:
    with Client(endpoints) as client:
        # Patient callers: each call gets an answer in the end, whichever process is restarted.
        with calling(client, name, hasty=False) as crowd:
            for line in sys.stdin:
                crowd.wait_for_progress(int(line))
                sys.stdout.write(f"{crowd.done}\n")
                sys.stdout.flush()
        sys.stdout.writelines(f"{unknown.message()}\n" for unknown in crowd.unknown)


if __name__ == "__main__":
    main(*sys.argv[1:])
