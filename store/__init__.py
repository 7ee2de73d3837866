"""The store: keys, clock, engine, versions, tables, the node that runs them, its server, client and command line.

Dependencies point one way, and a test walks the imports::

    cli, server → node → (tables, kv, catalog, filter) → mvcc → engine → keys, clock
    client → clock (and cortado.schema, cortado.proto); nothing of the server, and no lmdb
"""
