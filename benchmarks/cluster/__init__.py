"""Three nodes on one machine, in turns with three of etcd: ``make bench-cluster``.

Both clusters run at once, and each load goes round by round to one and then the other, so that a machine that becomes
busy or quiet does so for both. The same keys, the same bytes, the same durability; each by the client that its users
would take, and the fastest of them::

    Cortado      AsyncClient, tasks of one process             cortado_load.py
    etcd         clientv3 in Go, goroutines of one process     etcd_load/main.go
    both         h2load, one connection, a unary call each     h2load.py: what a client in another language would send

Nodes and clients share one machine's cores, so what a client costs is taken from the nodes. What each cost is counted.
"""
