"""Three nodes on one machine, beside etcd in the same run: ``make bench-cluster``.

Every system is asked the same things, with the same bytes and the same durability, in two ways::

    our client / gRPC's Python client      processes x threads, as an application calls
    h2load, a client written in C          the same unary calls, at next to no cost for the client

Nodes and clients share one machine's cores, so what a client costs is taken from the nodes. The second way shows how
much that is; only unary calls go through it, not the stream on which our client carries its calls.
"""
