"""A :class:`ServerConfig`, made of flags, environment and a file.

::

    # /etc/cortado.toml
    data-dir = "/var/lib/cortado"
    listen = "0.0.0.0:7621"
    advertise = "db1.example.org:7621"
    node-id = "db1"
    tls-cert = "/etc/cortado/db1.pem"
    ...
    [limit]
    writes-max = 4096

Flags win over the environment, that over the file. A value that is unknown, of another type, or out of its bounds stops
the start. The error names the setting, its place, the value and the bound. Paths in the file are relative to the
directory that the file is in. The settings themselves are in :mod:`cortado.store.settings.server`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cortado.errors import InvalidArgument
from cortado.store.process.limits import NodeLimits
from cortado.store.server.config import ServerConfig
from cortado.store.settings.gather import Found, check_variables, gather
from cortado.store.settings.server import CONFIG_VARIABLE, PREFIX, SETTINGS
from cortado.store.settings.toml_file import read_toml


def gathered(
    flags: Mapping[str, Any], file: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Found, ...]:
    """Return every setting with its value and its place, each valid by itself. ``flags`` go by the settings' names.

    Raises InvalidArgument naming the setting as it stands: ``--listen``, ``CORTADO_SERVER_LISTEN``, or
    ``listen in /etc/cortado.toml:3``.
    """
    environment = environment or {}
    check_variables(SETTINGS, environment, PREFIX, also="CONFIG")
    named = "--config"
    if file is None and environment.get(CONFIG_VARIABLE):
        file, named = Path(environment[CONFIG_VARIABLE]), CONFIG_VARIABLE
    read = None if file is None else read_toml(file, named)
    return gather(SETTINGS, flags=flags, environment=environment, prefix=PREFIX, file=read)


def configuration(found: tuple[Found, ...]) -> ServerConfig:
    """Return the checked configuration. Raises InvalidArgument, as :func:`gathered` does, if two settings do not
    fit."""
    fields: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    raft: dict[str, Any] = {}
    for each in found:
        table, dot, rest = each.setting.name.partition(".")
        of_table = {"limit": limits, "raft": raft}
        if dot:
            of_table[table][rest.replace("-", "_")] = each.value
        else:
            fields[each.setting.field] = each.value
    config = ServerConfig(
        **fields, limits=NodeLimits(**limits), raft=raft, sources={each.setting.name: each for each in found}
    )
    try:
        config.check()
    except InvalidArgument as refused:
        raise placed(refused, config) from None
    return config


def placed(refused: InvalidArgument, config: ServerConfig) -> InvalidArgument:
    """Return the refusal of a setting, found by its name or by the file that it names, under the place where it was
    written."""
    found = config.sources.get(refused.field)
    if found is not None:
        return dataclasses.replace(refused, field=found.named())
    for name in ("tls-cert", "tls-key", "tls-ca"):
        found = config.sources.get(name)
        if found is not None and found.value is not None and str(found.value) == refused.field:
            return dataclasses.replace(refused, field=found.named(), value=refused.value or refused.field)
    return refused
