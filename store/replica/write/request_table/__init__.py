"""The request table: a repeated write has one effect, and the first one's answer.

A caller who got no answer sends the same request with the same id again. The result of each request is written in the
transaction that applies it, so it is remembered exactly if it happened (``records.py``, ``table.py``).

- The same id with the same hash gets the remembered reply. Nothing is executed.
- The same id with another hash is InvalidArgument: the caller reuses ids.
- Ids sort by their timestamps, so the oldest are the first in the table. They are forgotten by age and by count: the
  leader decides (``forgetting.py``) and says so in the entry, as a *floor*, to just above the last one forgotten;
  every replica deletes the records below. So bounds may differ from node to node, and tables do not. An id below the
  floor may belong to a request that happened or not: OutcomeUnknown, *too old*, and never executed. One whose
  entry was on its way when the floor rose above it is remembered all the same, until the floor rises again.
- An idle group forgets nothing, so the floor stays below every timestamp that a caller can have seen since.
- Only a leader that has applied everything before its term looks here (``lookup.py``), so over a change of leader the
  table misses nothing. Requests in flight are not in the table yet: the node keeps them in mind until they are applied,
  answered or not.

Refusals are not remembered: they changed nothing, and the same request is worked out again.
"""
