"""Which level of ``cortado.v1`` a client was written for, and whether a server serves it.

A call of an older level means the same for ever, or is refused by name (until 1.0 calls may go, and the changelog says
which). A newer client at an older server can fail silently, since a server drops fields that it does not know: a
condition, say, of a level that it does not have. So a client names its level in its user agent, ``cortado/0.1.0
api/4``, and a server of a lower one refuses its calls. A client of another making may do the same; one without a level
is not checked.

Raise :data:`API_LEVEL` with a field, or a value of one, that an older server must not ignore.
"""

from __future__ import annotations

import re
from typing import Final

from cortado.errors import Unsupported

API_LEVEL: Final = 4
"""2: reads see a transaction's own writes, and return footprints. 3: tables are described as they were at a time. 4:
bulk loads stage rows, and written documents and pairs may expire."""

_SAID = re.compile(r"(?:^| )api/([0-9]{1,9})(?: |$)")


def user_agent(version: str) -> str:
    """Return the user agent of a client of this build."""
    return f"cortado/{version} api/{API_LEVEL}"


def check_api_level(said: str, level: int = API_LEVEL) -> None:
    """``said`` is a caller's user agent. Raises Unsupported, naming both levels if it is of a higher one."""
    found = _SAID.search(said)
    if found is not None and int(found[1]) > level:
        problem = f"the client asks for it, and this server has level {level}: upgrade servers before clients"
        raise Unsupported(f"level {int(found[1])} of the API cortado.v1", problem)
