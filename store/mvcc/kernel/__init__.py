"""The scan kernel: what reads many rows, compiled, so that it runs without the interpreter's lock.

::

    seam.py        which path a process runs, and why; compiles in a child process, loads what is compiled
    scanning.py    one slice: a pinned tree, scratch memory, and what the kernel packed, as a ScanChunk
    walking.py     texts of a slice's keys, columns of its bodies, groups by these (asked by cortado.store.mvcc.walks)
    bodies.py    ┐ compiled: Avro bodies, walked field by field, checked, and written to columns
    groups.py    │ compiled: rows with equal values, numbered
    texts.py     │ compiled: texts, cut out of keys
    rows.py      │ compiled: the newest visible version of each key, checked and packed
    tree.py      │ compiled: a place in one of LMDB's trees, moved from item to item
    pages.py     │ compiled: one page, one item; every pointer is checked before it is followed
    machine.py   ┘ compiled: loads, copies and CRC-32C at addresses

The Python path (:mod:`cortado.store.mvcc.store`) is what the kernel is compared with, what runs where there is no
kernel, and what reads a slice again in which the kernel met anything that it does not know.
"""
