"""Keys: typed parts as bytes whose order is the values' order, and the one keyspace that they live in.

:mod:`~cortado.store.keys.types` names the types of parts, :mod:`~cortado.store.keys.codec` encodes parts (and
:mod:`~cortado.store.keys.columns` many rows of them at once), :mod:`~cortado.store.keys.keyspace` draws the map of all
keys, and :mod:`~cortado.store.keys.dump` prints any of them for logs and errors. The bytes are described in
``docs/formats/keys.md``; they are on disk, so a change to one is a change of format.

:mod:`~cortado.store.keys.names` says which names are good, and :mod:`~cortado.store.keys.packing` joins byte strings.
"""
