"""The events that must occur over the seeds that CI runs: every fault, every path that real life takes rarely, and
every invariant of the product."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
INVARIANT: Final = "invariant: "
"""The prefix of an invariant's name in the counts: so it is counted."""

# The simulation puts something else in the place of the code that asserts these.
NOT_SIMULATED: Final = {
    "a write transaction ends on the thread that it began on": "LMDB's; see tests/unit/engine/test_lmdb_engine.py",
    "a command that was drafted has its batch to itself": "none is; see tests/unit/node/test_entries_in_flight.py",
    "no engine key comes twice in an entry": "the kernel's; see tests/property/mvcc/test_packed_rows.py",
    "no logical key of a commit is the beginning of another": "likewise; see tests/property/mvcc/test_drafts.py",
    "a line of the audit log is bounded": "roles are off; see tests/unit/server/test_audit.py",
    "all records of a principal's drops are counted": "likewise; see tests/unit/catalog/test_shares.py",
}

FAULTS: Final = (
    "fault: bad weather",
    "fault: bit rot",
    "fault: clean stop",
    "fault: clients cut off",
    "fault: clock in 2071",
    "fault: clock jump",
    "fault: crash",
    "fault: crash of all",
    "fault: crash of the leader",
    "fault: crash while entries were disowned",
    "fault: empty directory refused",
    "fault: end of the log lost",
    "fault: epoch bump",
    "fault: failing sync",
    "fault: follower that doubts",
    "fault: full disk",
    "fault: hanging sync",
    "fault: leader cut off",
    "fault: leader transfer",
    "fault: log file lost",
    "fault: log write lost",
    "fault: log write misdirected",
    "fault: lost disk",
    "fault: lost write",
    "fault: member added",
    "fault: member removed",
    "fault: member that says what cannot be",
    "fault: misdirected write",
    "fault: one-way cut",
    "fault: partition",
    "fault: pause",
    "fault: rotten log",
    "fault: scarce disks of followers",
    "fault: slow disk",
    "messages cut off",
    "messages delayed",
    "messages doubled",
    "messages lost",
    "messages of a stranger",
    "messages overtaken",
    "processes ended by a damaged log",
    "processes ended by a failed sync",
    "torn commits kept",
    "torn commits lost",
    "transactions refused for want of room",
)

PATHS: Final = (
    "ahead reads",
    "attacks of a stranger",
    "at reads",
    "attempts that came after they were settled",
    "ceiling raises applied",
    "changes of rows watched",
    "changes watched",
    "commits evaluated ahead",
    "commits too old",
    "conflicts: range",
    "conflicts: read",
    "conflicts: write",
    "damaged items repaired",
    "damaged log files found by the patrol",
    "deletes of messages acknowledged",
    "clocks found out of bounds",
    "claims to members that began anew",
    "disputes opened",
    "disputes settled",
    "doubts that came too late",
    "elections won",
    "entries disowned",
    "entries doubted",
    "entries examined",
    "entries slowed for a member",
    "entries truncated",
    "installations gone on with after a crash",
    "large chunks refused: WriteConflict",
    "large chunks staged",
    "large chunks that met a lock",
    "large transactions aborted",
    "large transactions aborted: expired",
    "large transactions aborted: table",
    "large transactions committed",
    "leader transfers done",
    "gets of messages",
    "leases acquired",
    "leases lost",
    "lives that answer each call by itself",
    "lives that answer runs",
    "linearizable reads",
    "linearizable reads refused or lost",
    "looks at all rows",
    "member changes rolled back",
    "outcomes unknown",
    "pre-votes refused",
    "puts of messages acknowledged",
    "ranges read by others",
    "ranges searched for changes",
    "reads at leases",
    "reads refused for a lost round",
    "reads that met damage",
    "snapshots put off for damage",
    "reads too far ahead",
    "reads too old",
    "reads under a lease",
    "requests forgotten",
    "requests too old",
    "rows found changed",
    "rows found unchanged",
    "retries answered from the table",
    "indexes checked that were built",
    "indexes seen building",
    "indexes seen failed",
    "snapshot fetches",
    "snapshot fetches broken",
    "snapshot fetches resumed",
    "snapshots installed",
    "staged rows that a writer moved",
    "stale reads",
    "stale reads refused or lost",
    "strangers refused",
    "strangers vouched for",
    "transactions aborted",
    "transactions cancelled",
    "transactions committed",
    "transactions found committed",
    "windows that the index had",
    "windows that the index had not",
    "writes of the log on the loop",
    "writes of the log on the loop that fail",
    "writes of the log that hold the loop",
    "writes that expire",
    "transactions that only read",
    "transactions unknown",
    "versions removed",
    "batches that waited for room in flight",
    "batches tried again for want of room",
    "batches withdrawn",
    "writes acknowledged",
    "writes that met damage",
    "writes that headed the next batch",
)

MUST_OCCUR: Final = FAULTS + PATHS


@cache
def invariants() -> list[tuple[str, str]]:
    """Return each call of ``invariant`` in the product: its place and its text. Raises ValueError if the text is put
    together at run time: it could be neither counted nor found."""
    found = []
    for path in sorted(each for folder in ("raft", "store") for each in (ROOT / folder).rglob("*.py")):
        text = path.read_text()
        # Most files have none, and need not be parsed.
        for node in ast.walk(ast.parse(text)) if "invariant" in text else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "invariant"):
                continue
            place, what = f"{path.relative_to(ROOT)}:{node.lineno}", node.args[1] if len(node.args) > 1 else None
            if not (isinstance(what, ast.Constant) and isinstance(what.value, str)):
                raise ValueError(f"{place}: what an invariant says must be a literal")
            found.append((place, what.value))
    return found


def invariants_to_reach() -> list[str]:
    """Return the invariants that the seeds must count."""
    return [INVARIANT + what for _, what in invariants() if what not in NOT_SIMULATED]
