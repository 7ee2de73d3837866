"""The scan kernel: the code that reads or makes many rows, compiled, so that it runs without the interpreter's lock.

::

    seam.py        the path that a process runs, and why; compiles in a child process, loads compiled code
    scanning.py    one slice: a pinned tree, scratch memory, and the packed rows, as a ScanChunk
    walking.py     texts of a slice's keys, columns of its bodies, groups by these (asked by cortado.store.mvcc.walks)
    making.py      keys, order and items of new rows (asked by cortado.store.mvcc.row_maker)
    new_rows.py  ┐ compiled: keys laid from columns, put into order, and made the engine's items
    bodies.py    │ compiled: Avro bodies, walked field by field, checked, and written to columns
    groups.py    │ compiled: rows with equal values, numbered
    texts.py     │ compiled: texts, cut out of keys
    rows.py      │ compiled: the newest visible version of each key, checked and packed
    tree.py      │ compiled: a place in one of LMDB's trees, moved from item to item
    pages.py     │ compiled: one page, one item; every pointer is checked before it is followed
    machine.py   ┘ compiled: loads, copies and CRC-32C at addresses

The Python path (:mod:`cortado.store.mvcc.store`) is the kernel's reference, and runs if there is no kernel. It reads a
slice again if the kernel met anything there that it does not know.
"""
