"""Three nodes on one machine, in turns with three of etcd: ``make bench-cluster``.

Both clusters run at once, and each load goes round by round to one and then the other, so that a change in the
machine's load meets both. The same keys, the same bytes, the same durability; each by the client that its users would
take, and the fastest of them::

    Cortado      AsyncClient, tasks of one process             cortado_load.py
    etcd         clientv3 in Go, goroutines of one process     etcd_load/main.go
    both         h2load, one connection, a unary call each     h2load.py: the calls of a client in another language

Nodes and clients share one machine's cores, so a client's cost is taken from the nodes. Both costs are counted.
"""
