"""docs/configuration.md ends with the settings as the code describes them."""

from __future__ import annotations

from pathlib import Path

from cortado.store.settings.client import CLIENT_SETTINGS, PREFIX
from cortado.store.settings.reference import BEGIN, reference
from cortado.store.settings.server import SETTINGS

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()


def test_the_reference_on_the_page_is_what_the_code_says() -> None:
    _, _, written = PAGE.partition(BEGIN)
    assert written.strip() == reference().strip(), "write it anew: cortado config reference"


def test_every_setting_says_what_it_means() -> None:
    for each in SETTINGS:
        assert each.meaning.endswith("."), each.name
        assert each.group, each.name
        assert each.default is None or each.kind.show(each.default) is not None


def test_the_settings_of_the_command_line_are_on_the_page() -> None:
    for each in CLIENT_SETTINGS:
        [row] = [line for line in PAGE.splitlines() if f"`{each.variable(PREFIX)}`" in line]
        assert f"`{each.flag}`" in row
        assert f"| `{each.name}` |" in row
