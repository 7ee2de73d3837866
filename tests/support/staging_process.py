"""A task of a large transaction in a process of its own: ``ENDPOINTS TABLE ID TASK ATTEMPT FIRST END``.

Stages the rows from FIRST to END, each with the attempt in ``v`` (plus one), and writes how many are staged, a line for
every answer. It may be killed.
"""

from __future__ import annotations

import sys

from cortado.store.client import Client

TTL_S = 30.0
CHUNK_ROWS = 250


def staged_row(number: int, attempt: int) -> dict[str, object]:
    """Return the row of an attempt."""
    return {"id": number, "v": attempt + 1, "name": f"n{number}-{attempt}"}


def main(endpoints: str, table: str, transaction_id: str, *numbers: str) -> None:
    task, attempt, first, end = map(int, numbers)

    def tell(done: int) -> None:
        sys.stdout.write(f"{done}\n")
        sys.stdout.flush()

    with Client(endpoints, timeout_s=60) as client:
        parts = client.large_transactions
        with parts.staging(transaction_id, task=task, attempt=attempt, ttl_s=TTL_S) as staging:
            rows = (staged_row(number, attempt) for number in range(first, end))
            staging.table(table).put_many(rows, chunk_rows=CHUNK_ROWS, progress=tell)


if __name__ == "__main__":
    main(*sys.argv[1:])
