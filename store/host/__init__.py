"""The host: it opens the groups of one node, makes their replicas, starts and stops them, and tells their status.

``host.py`` starts in this order: open each group's log (``opening.py``), connect, delete leftovers, verify stored data
(``patrol.py``), serve. The patrol goes on behind that, for the data of all groups.
"""
