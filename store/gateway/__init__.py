"""The HTTP gateway: documents and pairs by URI, before a cluster.

A gateway is an ASGI application over :class:`~cortado.store.client.AsyncClient`. It keeps no state of its own, so any
number of gateways can serve one cluster. The path of a call::

    uvicorn ──────► connections.py   bounds a connection: its head, its idle time, a reader that takes nothing
                    heads.py         accepts only heads of one form; httptools parses these
                    application.py   refuses a call for which there is no room
                    routes.py        finds the resource that the path names
                    operations.py    the table of what is served: which parameters each call takes
                    calls.py         one call: its path, its parameters, its body, each read strictly
                      pairs.py, documents.py, ...       a module for each group of resources
                    problems.py      errors of the one tree ⇄ status and ``application/problem+json``

``bounds.py`` limits the calls, streams and bytes in flight, ``measures.py`` counts them, and ``metrics.py`` serves the
counts at a separate address.

Each group of resources has a function ``operations()`` that returns rows of the table. A row describes its call in
full: the OpenAPI document is generated from the rows, and a parameter that is in no row is refused.
"""
