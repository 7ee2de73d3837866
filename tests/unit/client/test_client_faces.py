"""The two faces offer the same, name by name and parameter by parameter, with the same words."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import cortado
from cortado.store import client as package

PAIRS = [
    (getattr(package, name), getattr(package, name.removeprefix("Async")))
    for name in package.__all__
    if name.startswith("Async")
]


def offered(face: type) -> dict[str, Any]:
    """Return the public names and their objects."""
    return {name: member for name, member in inspect.getmembers(face) if not name.startswith("_")}


def of_threads(annotation: str) -> str:
    """Return the synchronous face's annotation for one of the core."""
    plain = re.sub(r"\bAsync(?=[A-Z])", "", annotation)
    plain = re.sub(r"\bAwaitable\[(\w+)\]", r"\1", plain)
    return plain.replace("Rows[", "Iterable[").replace("Generator[bytes, None]", "Generator[bytes, None, None]")


def shape(function: Any) -> list[tuple[str, Any, Any, str]]:
    """Return names, kinds, defaults and annotations of parameters."""
    return [
        (each.name, each.kind, each.default, of_threads(str(each.annotation)))
        for each in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize(("core", "face"), PAIRS, ids=lambda each: each.__name__)
def test_both_faces_offer_the_same_names(core: type, face: type) -> None:
    of_core = set(offered(core))
    # An attribute of the core's instances is a property of the forwarder.
    given = {name for name, member in offered(face).items() if name in of_core or not isinstance(member, property)}
    assert given == of_core


@pytest.mark.parametrize(("core", "face"), PAIRS, ids=lambda each: each.__name__)
def test_both_faces_take_the_same_parameters_and_return_the_same(core: type, face: type) -> None:
    for name, member in offered(core).items():
        twin = inspect.getattr_static(face, name)
        if isinstance(member, property):
            assert isinstance(twin, property), name
            continue
        if isinstance(twin, property):
            assert not inspect.signature(member).parameters.keys() - {"self"}, name
            member, twin = member, twin.fget
        assert shape(member) == shape(twin), name
        returned = of_threads(str(inspect.signature(member).return_annotation))
        assert returned == str(inspect.signature(twin).return_annotation), name


@pytest.mark.parametrize(("core", "face"), PAIRS, ids=lambda each: each.__name__)
def test_what_waits_is_a_coroutine_or_an_iterator_and_never_both(core: type, face: type) -> None:
    for name, member in offered(core).items():
        if callable(member):
            twin = inspect.getattr_static(face, name)
            assert not inspect.iscoroutinefunction(twin), name
            returns = str(inspect.signature(member).return_annotation)
            assert not (inspect.iscoroutinefunction(member) and "AsyncIterator" in returns), name


@pytest.mark.parametrize("face", [face for pair in PAIRS for face in pair], ids=lambda each: each.__name__)
def test_every_public_name_is_documented_in_both_faces(face: type) -> None:
    assert inspect.getdoc(face)
    for name, member in offered(face).items():
        assert inspect.getdoc(member), f"{face.__name__}.{name}"
        if callable(member):
            hints = inspect.signature(member)
            assert hints.return_annotation is not inspect.Signature.empty, name
            assert all(
                each.annotation is not inspect.Parameter.empty
                for each in hints.parameters.values()
                if each.name != "self"
            ), name


@pytest.mark.parametrize("name", package.__all__)
def test_every_name_of_the_package_is_documented(name: str) -> None:
    found = getattr(package, name)
    assert not inspect.isclass(found) or inspect.getdoc(found)


def test_the_root_offers_both_clients() -> None:
    assert (cortado.Client, cortado.AsyncClient) == (package.Client, package.AsyncClient)
