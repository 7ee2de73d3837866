"""A cluster on one machine, for development and for trying out what happens when nodes die.

::

    cortado cluster up ──► supervisor ──┬─► cortado server  n1   127.0.0.1:7621
                              │         ├─► cortado server  n2   127.0.0.1:7622
     cluster status, kill,    │         └─► cortado server  n3   127.0.0.1:7623
     pause, partition ... ◄── │ files in the cluster's directory

Nodes are real servers on loopback, each with a data directory, a log and a port of its own. The supervisor begins the
cluster as an operator would: it starts the first node, announces the others, lets them join, and promotes them. Then
it starts again what dies. It answers no questions: what the other commands need stands in files.

::

    cortado-cluster/
      cluster.json         the plan: the nodes, their addresses, what has been done of it
      run.json             what runs: the process ids of the supervisor and the nodes, and how often each was started
      supervisor.log       what a detached supervisor says
      supervisor.lock      held by the supervisor that runs
      server.toml          settings for all nodes, where some were given
      tls/                 certificates, where they were asked for
      n1/data, n1/server.log, n1/faults

No process outlives the supervisor, however it ends: each node holds one end of a pipe, and ends when the other end
does; on Linux the kernel kills it besides.
"""
