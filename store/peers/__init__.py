"""Communication between nodes: one authenticated stream per pair, snapshots, and joining, in frames over TCP.

::

    transport.py    the node's Transport: what goes to whom        listener.py   the port for peers
        dialling.py, dial.py    when and how a peer is dialled        service.py    what requests are answered with
        link.py, liveness.py    one stream: its queue, its life       admission.py  who is a peer
        fetch.py, ranges.py     requests to a peer                    join.py       a new data directory joins a cluster
                  `─────────────── connecting.py ── connection.py ── frames.py ───────────────'

``identity.py`` says whose a certificate is, ``credentials.py`` loads certificates and follows their renewal, ``tls.py``
says what a failed handshake means, ``certificates.py`` makes certificates.

docs/security.md tells an operator what protects what, and what each refusal means; docs/formats/peers.md has the bytes.
"""
