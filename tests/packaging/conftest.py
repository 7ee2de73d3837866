"""The packages, built once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.packages import Packages, build, copy_source


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files under version control, in a folder of their own."""
    copy = tmp_path_factory.mktemp("source")
    copy_source(copy)
    return copy


@pytest.fixture(scope="session")
def packages(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """As ``python -m build`` makes them: the wheel from the unpacked sdist."""
    out = tmp_path_factory.mktemp("dist")
    build(source, out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return Packages(sdist, wheel)
