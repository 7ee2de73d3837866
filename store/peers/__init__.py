"""Communication between nodes: one authenticated gRPC stream per pair, snapshots, and joining.

``transport.py`` is the node's :class:`~cortado.store.node.transport.Transport`: it dials (``dialer.py``), queues
(``link.py``) and introduces itself (``hello.py``). ``service.py`` is the other end, served on the node's one port.
``join.py`` brings a new data directory into a cluster. ``identity.py`` says whose a certificate is, ``credentials.py``
loads certificates for gRPC and follows their renewal, ``certificates.py`` makes them.

docs/security.md tells an operator what protects what, and what each refusal means.
"""
