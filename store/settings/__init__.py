"""Settings: their table, the places that may set them, and the place that each value came from.

::

    server.py      the one table of a server's settings: name, kind, default, unit, bound, meaning
       │
       ├─► flags       --data-dir PATH          cortado server, cortado config show
       ├─► variables   CORTADO_SERVER_DATA_DIR
       ├─► a file      data-dir = "..."         TOML, with the line of each key
       └─► the page    docs/configuration.md    cortado config reference

    client.py      the same of the command line: CORTADO_ENDPOINTS, and contexts in a file

``gather.py`` takes the first value from flags, environment, file and default, and keeps its place. Nothing here needs
more than the standard library, so that a command line without a server can show and check.
"""
