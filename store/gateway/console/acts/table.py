"""All acts of the console, by their names."""

from __future__ import annotations

from typing import Final

from cortado.store.gateway.console.acts import of_cluster, of_data, of_principals, of_quotas, of_schemas
from cortado.store.gateway.console.acts.act import Act

ACTS: Final[dict[str, Act]] = {
    each.name: each for group in (of_cluster, of_data, of_schemas, of_principals, of_quotas) for each in group.ACTS
}
