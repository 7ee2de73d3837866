"""Watches: the changes of a key range from a timestamp on, in the order of their commits, without gaps.

::

    StateMachine ──applied──► ChangeFeed ──► queue of each watch ──► Watch.batches() ──► a service's stream
                                  │  RangeIndex: who watches it           ▲
                                  │  RecentChanges: the last megabytes    │ catching up: what lies before the queue
                                  `───────────────────────────────────────┴── HistoryPass: versions in the engine
"""
