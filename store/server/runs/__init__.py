"""Runs: the plain calls of one message of the shared stream, answered together.

::

    calls of a message ─► plain, of one method, namespace and credential? ─yes─► a run: one check, one proposal or read,
                                  │ no                                           one future, one list of replies
                                  ▼
                          each by itself, as ever

What most calls ask for is little beside what a call costs: its coroutine, task, future, proposal, messages and the
copies of its context. A run has each of these once. The class of each method says which calls are plain
(:mod:`~cortado.store.server.runs.kv`, :mod:`~cortado.store.server.runs.documents`), and ``methods.py`` lists them::

    RunMethod ─┬─ PlainWrites    one proposal, n timestamps, one future      what is written: ``evaluation``
               └─ PlainReads     one timestamp, one reader                   what is answered: ``replies``

Anything else goes the general way, which a run must not be told from:

- *Order.* A run ends before any other write of its message, and before a second write under one request id.
- *Bounds.* A run has at most ``RUN_CALLS_MAX`` calls, and what a batch may hold. It takes as many places, and as many
  bytes, as its calls. What would be refused by itself is no plain call.
- *Request ids* are looked up in one read transaction. A call that may have been asked before leaves the run, and goes
  the general way between what came before it and what came after.
- *Parted.* If one write may be refused alone when the run is evaluated, the run writes nothing. Each of its calls then
  goes the general way.
- *Ends.* Each call has its own: a call that is given up, or late, keeps its place and gets no reply, and an
  OutcomeUnknown names its request.
- *Rights, quotas, metrics.* A run that is not let in goes the general way, where each call is denied by itself. What
  counts calls counts each. With a tracer there are no runs, since each call is a span.
- *Bytes.* Entries, records and replies are to the byte what the calls by themselves come to at the same timestamps.
"""
