"""The physically stored data of one node, in the messages of ``cortado.v1.Inspect``.

Each function looks at one bounded piece of an engine and returns the start of the next one, so that it can run beside a
node's work. The service runs it on the scan thread, and ``stopped.py`` over the directory of a node that does not run.
Both give the same messages, so that a display need not know the difference. Nothing is written, and damage that they
meet is reported, not repaired: the node's own reads do that.

``log.py`` reads the replicated log, ``versions.py`` the versions of keys, ``verify.py`` checks and digests ranges, and
``scrubbing.py`` puts a whole directory's checks in a row.
"""
