"""The reference of all settings: ``cortado config reference`` writes what docs/configuration.md ends with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cortado.store.settings.gateway import GATEWAY_SETTINGS
from cortado.store.settings.gateway import PREFIX as GATEWAY_PREFIX
from cortado.store.settings.kinds import FLAG
from cortado.store.settings.server import PREFIX, SETTINGS
from cortado.store.settings.setting import Setting

BEGIN: Final = "<!-- All below is what cortado config reference writes. -->"


def reference() -> str:
    """Markdown: a table for each group of settings, in their order, those of a server before those of a gateway."""
    lines = [*_lines(SETTINGS, PREFIX), *_lines(GATEWAY_SETTINGS, GATEWAY_PREFIX)]
    return "\n".join(lines).rstrip() + "\n"


def _lines(settings: Sequence[Setting], prefix: str) -> Iterator[str]:
    for group in dict.fromkeys(each.group for each in settings):
        of_group = [each for each in settings if each.group == group]
        yield f"## {group}"
        yield ""
        yield f"As a flag `{of_group[0].flag}`, as a variable `{of_group[0].variable(prefix)}`, and so on."
        yield ""
        yield "| setting | default | unit | bound | meaning |"
        yield "|---|---|---|---|---|"
        for each in of_group:
            bound = "true or false" if each.kind is FLAG else ""
            cells = (f"`{each.name}`", _default(each), each.unit_text, each.bound_text or bound, each.meaning)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _default(setting: Setting) -> str:
    shown = setting.show(setting.default)
    return shown.strip("()") if shown.startswith("(") else f"`{shown}`"
