"""What must have occurred over the seeds that CI runs: every fault, and every path that real life takes rarely."""

from __future__ import annotations

from typing import Final

FAULTS: Final = (
    "fault: bad weather",
    "fault: clean stop",
    "fault: clients cut off",
    "fault: clock in 2071",
    "fault: clock jump",
    "fault: crash",
    "fault: crash of all",
    "fault: crash of the leader",
    "fault: empty directory refused",
    "fault: epoch bump",
    "fault: failing sync",
    "fault: full disk",
    "fault: hanging sync",
    "fault: leader cut off",
    "fault: leader transfer",
    "fault: lost disk",
    "fault: member added",
    "fault: member removed",
    "fault: one-way cut",
    "fault: partition",
    "fault: pause",
    "fault: slow disk",
    "messages cut off",
    "messages delayed",
    "messages doubled",
    "messages lost",
    "messages of a stranger",
    "messages overtaken",
    "processes ended by a failed sync",
    "torn commits kept",
    "torn commits lost",
    "transactions refused for want of room",
)

PATHS: Final = (
    "ahead reads",
    "at reads",
    "ceiling raises applied",
    "elections won",
    "entries truncated",
    "leader transfers done",
    "linearizable reads",
    "linearizable reads refused or lost",
    "member changes rolled back",
    "outcomes unknown",
    "pre-votes refused",
    "reads too far ahead",
    "requests forgotten",
    "requests too old",
    "retries answered from the table",
    "snapshot fetches",
    "snapshot fetches broken",
    "snapshot fetches resumed",
    "snapshots installed",
    "stale reads",
    "stale reads refused or lost",
    "votes refused",
    "writes acknowledged",
)

MUST_OCCUR: Final = FAULTS + PATHS
