"""Runs: the plain calls of one message of the shared stream, answered together.

::

    calls of a message ─► plain, of one method, namespace and credential? ─yes─► a run: one check, one proposal or read,
                                  │ no                                           one future, one list of replies
                                  ▼
                          each by itself, as ever

What most calls ask for is little beside what a call costs: its coroutine, task, future, proposal, messages and the
copies of its context. A run has each of these once. A plain call is a put with a request id, without a condition and
an expiry; or a get of the newest state. Anything else goes the general way, which a run must not be told from:

- *Order.* A run ends before any other write of its message, and before a second put under one request id.
- *Bounds.* A run has at most ``RUN_CALLS_MAX`` calls, and what a batch may hold. It takes as many places, and as many
  bytes, as its calls. What would be refused by itself is no plain call.
- *Request ids* are looked up in one read transaction. A call that may have been asked before leaves the run, and goes
  the general way between what came before it and what came after.
- *Ends.* Each call has its own: a call that is given up, or late, keeps its place and gets no reply, and an
  OutcomeUnknown names its request.
- *Rights, quotas, metrics.* A run that is not let in goes the general way, where each call is denied by itself. What
  counts calls counts each. With a tracer there are no runs, since each call is a span.
- *Bytes.* Entries, records and replies are to the byte what the calls by themselves come to at the same timestamps.
"""
