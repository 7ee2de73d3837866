"""A cluster on one machine, for development and for trying the death of nodes.

::

    cortado dev up ──► supervisor ──┬─► cortado server  n1   127.0.0.1:7621
                          │         ├─► cortado server  n2   127.0.0.1:7622
     dev status, kill,    │         └─► cortado server  n3   127.0.0.1:7623
     pause, partition ◄── │ files in the cluster's directory

Nodes are real servers on loopback, each with a data directory, a log and a port of its own. The supervisor begins the
cluster as an operator would: it starts the first node, announces the others, lets them join, and promotes them. Then
it restarts nodes that die. It answers no questions: the other commands read files.

::

    cortado-cluster/
      cluster.json         the plan: the nodes, their addresses, and their progress
      run.json             the processes: ids of the supervisor and the nodes, and how often each was started
      supervisor.log       the output of a detached supervisor
      supervisor.lock      held by the supervisor that runs
      server.toml          settings for all nodes, if some were given
      tls/                 certificates, if they were asked for
      n1/data, n1/server.log, n1/faults

No process outlives the supervisor, however it ends: each node holds one end of a pipe, and ends when the other end
does; on Linux the kernel kills it besides.
"""
