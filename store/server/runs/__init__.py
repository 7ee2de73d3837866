"""Runs: the plain calls of one message of the shared stream, answered together.

::

    calls of a message ─► plain, of one method, namespace and credential? ─yes─► a run: one check, one proposal or read,
                                  │ no                                           one future, one list of replies
                                  ▼
                          each by itself, as ever

The work of most calls is small beside the cost of a call: its coroutine, task, future, proposal, messages and the
copies of its context. A run has each of these once. The class of each method says which calls are plain
(:mod:`~cortado.store.server.runs.kv`, :mod:`~cortado.store.server.runs.documents`,
:mod:`~cortado.store.server.runs.commits`), and ``methods.py`` lists them::

    RunMethod ─┬─ PlainWrites    one proposal, n timestamps, one future      the writes:  ``evaluation``
               └─ PlainReads     one timestamp, one reader                   the answers: ``replies``

All other calls go the general way, and a run must not behave differently from it:

- *Order.* A run ends before any other write of its message, and before a second write under one request id.
- *Bounds.* A run has at most ``RUN_CALLS_MAX`` calls, and the bytes of a batch. It takes as many places, and as many
  bytes, as its calls. A call that would be refused by itself is no plain call.
- *Request ids* are looked up in one read transaction. A call that may be a repetition leaves the run, and goes the
  general way between the calls before it and those after it.
- *Refused.* A commit may be refused alone when the run is evaluated. The others are not, and those behind it do not
  see it.
- *Parted.* If any other write may be refused alone when the run is evaluated, the run writes nothing. Each of its calls
  then goes the general way.
- *Ends.* Each call has its own: a call that is given up, or late, keeps its place and gets no reply, and an
  OutcomeUnknown names its request.
- *Rights, quotas, metrics.* A run that is not admitted goes the general way: each call is denied by itself. Quotas and
  metrics count each call. With a tracer there are no runs, since each call is a span.
- *Bytes.* Entries, records and replies are to the byte those of the single calls at the same timestamps.
"""
