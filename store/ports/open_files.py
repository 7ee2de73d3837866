"""How many files a node or a gateway may have open, and how many of them its callers' connections may take.

A connection is an open file. If callers could take all, a node could neither reach its peers nor open a snapshot. A
follower that restarts would stay out for as long as a client keeps idle connections open; a gateway could not follow
another leader::

    0 ............................................ soft limit, raised to the hard one (to 65,536 at most)
    | callers' connections            | own share |
                                       of a node: data, logs, snapshots, connections of peers (128 at most) and to them
                                       of a gateway: connections to nodes

A node that cannot be reached for callers' connections reaches the others itself: either of two peers may open the
stream between them.
"""

from __future__ import annotations

import logging
import resource
from typing import Final

_LOG: Final = logging.getLogger(__name__)

OPEN_FILES_MAX: Final = 65_536
OWN_FILES: Final = 384
_WARN_BELOW: Final = 1_024


def raise_open_files() -> int:
    """Raise this process's soft limit as far as it may itself; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as problem:
            _LOG.warning("the limit of open files stays at %d: %s", soft, problem)
            return soft
        soft = wanted
    if soft != resource.RLIM_INFINITY and soft < _WARN_BELOW:
        _LOG.warning(
            "only %d files may be open (LimitNOFILE=, ulimit -n): %d callers' connections", soft, connections_max(soft)
        )
    return OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else soft


def connections_max(open_files: int) -> int:
    """Return how many connections of callers are accepted with this limit of open files."""
    return max(open_files - min(OWN_FILES, open_files // 2), 1)
