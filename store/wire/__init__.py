"""Both sides of ``cortado.v1``, beside its messages: levels of the API, errors on their way, numbers written by hand.

::

    api_level.py     which level a client was written for, and whether a server serves it
    rpc_errors.py    an error as a gRPC status with details, and back
    varint.py        protobuf's numbers
"""
