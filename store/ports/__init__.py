"""A process that listens, a node's or a gateway's: its addresses, its certificates, and the connections that it takes.

::

    addresses.py           a host and a port, as operators write them     certificate_files.py   files of certificates
    accepting.py           connections, one by one, with their handshake  open_files.py          how many may be open
    port_file.py           tells the starter the address
"""
