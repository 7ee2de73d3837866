"""Communication between nodes: one authenticated stream per pair, snapshots, and joining, in frames over TCP.

::

    transport.py    the node's Transport: messages to peers           listener.py   the port for peers
        dialling.py, dial.py    when and how a peer is dialled        service.py    answers to requests
        link.py, liveness.py    one stream: its queue, its life       admission.py  decides which nodes are peers
        fetch.py, ranges.py     requests to a peer                    join.py       a new data directory joins a cluster
                  `─────────────── connecting.py ── connection.py ── frames.py ───────────────'

``identity.py`` reads the name in a certificate, ``credentials.py`` loads certificates and follows their renewal,
``tls.py`` explains failed handshakes, ``certificates.py`` makes certificates.

docs/security.md tells an operator the protections and the meaning of each refusal; docs/formats/peers.md has the bytes.
"""
