"""What one node has physically stored, in the messages of ``cortado.v1.Inspect``.

Each function looks at one bounded piece of an engine and says where the next one begins, so that it can run beside a
node's work; the service runs it on the scan thread, and ``stopped.py`` over the directory of a node that does not run.
Both give the same messages, so that whoever shows them need not know which it was. Nothing is written, and damage that
is met is told, not repaired: the node's own reads do that.

``log.py`` reads the replicated log, ``versions.py`` the versions of keys, ``verify.py`` checks and digests ranges, and
``scrubbing.py`` puts a whole directory's checks in a row.
"""
