"""Backups: a cluster's state at one timestamp in a directory of files, and from there into a new cluster.

``runs.py`` has the bytes that the server, the network and the files have in common, ``part_file.py`` and
``manifest.py`` those of the files. ``create.py`` makes a backup, ``check.py`` proves that one is whole, ``restore.py``
brings it back; ``chain.py`` finds the backups that are there already, and ``directory.py`` is the place of the files:
on a disk or in an object store.
"""
