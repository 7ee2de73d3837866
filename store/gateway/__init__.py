"""The HTTP gateway: documents and pairs by URI, before a cluster.

It holds nothing: an ASGI application over :class:`~cortado.store.client.AsyncClient`, so that as many as are wanted may
run, beside each other and anywhere. How a call passes::

    uvicorn ──────► connections.py   bounds a connection: its head, its idle time, a reader that takes nothing
                    heads.py         the one form of a head; httptools parses what has it
                    application.py   a call more than there is room for
                    routes.py        the path as it was sent
                    operations.py    the table of what is served: which parameters each call takes
                    calls.py         one call: its path, its parameters, its body, each read strictly
                      pairs.py, documents.py, ...       a module for each group of resources
                    problems.py      errors of the one tree ⇄ status and ``application/problem+json``

What is taken on at a time is bounded by ``bounds.py``, counted by ``measures.py``, and shown to the operator by
``metrics.py``, at an address of its own.

A group of resources is a function ``operations()``, which returns the rows of the table. The rows say all there is to
know of a call, so the OpenAPI document is made of them, and a parameter that no row names is refused.
"""
