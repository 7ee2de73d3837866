"""The synchronous face: the runtime of threads and locks, and the classes that drive the core over it.

``drive`` runs a coroutine in one step. ``runtime`` performs the core's awaits, over ``io_thread``, ``line``, ``calls``
and ``call_stream``. Each other module is one service's forwarder: the names, parameters and documentation of the
core's class, without ``async``.
"""
