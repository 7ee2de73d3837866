"""Put a run in line: as :meth:`Replica.submit` does it for one write, once for all of them.

A refusal of the run refuses each of its writes. The caller asks before which requests are new
(:meth:`~cortado.store.replica.write.request_table.lookup.KnownRequests.not_new`), and may await nothing in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cortado.invariants import invariant
from cortado.store.auth.caller import CALLER, checked
from cortado.store.replica.replica import Replica
from cortado.store.replica.write.run import EvaluateRun, Run


def submit_run(
    replica: Replica, evaluate: EvaluateRun, *, size_bytes: int, request_ids: Sequence[bytes], hashes: Sequence[bytes]
) -> Run:
    """Put writes of new requests in line, to be evaluated after everything submitted before. ``size_bytes`` is about
    the size of all requests. Raises as :meth:`Replica.submit`."""
    replica.check_serving()
    roles, known = replica.roles, replica.driver.pipeline.requests.keys() & request_ids
    is_new = not known and len(set(request_ids)) == len(request_ids) == len(hashes)
    invariant(is_new, "a run has new requests alone, each once", len(known), len(request_ids))
    caller = CALLER.get()
    evaluate = checked(evaluate, caller, lambda: roles.appended)
    place = replica.process.writes.take(size_bytes, len(request_ids))
    done = asyncio.get_running_loop().create_future()
    run = Run(evaluate, size_bytes, request_ids, hashes, done, [place], waiters=len(request_ids))
    run.frees = caller is not None and caller.frees
    try:
        replica.driver.propose(run)
    except BaseException:
        place.leave()
        raise
    return run
