"""The collected samples of the defined metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cortado.store.observe.definitions import Definition
from cortado.store.observe.measures import Histogram

Value: TypeAlias = "float | Histogram"
Found: TypeAlias = "tuple[str, tuple[str, ...], Value]"
"""The name of a definition, the values of its labels, and the sample's."""


class Sample(NamedTuple):
    """``labels`` are the values of the definition's labels, in its order."""

    labels: tuple[str, ...]
    value: Value


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and what there is of it now."""

    definition: Definition
    samples: list[Sample]


def families(definitions: dict[str, Definition], found: Iterable[Found]) -> list[Family]:
    """Return the families with at least one sample, in the order of the definitions."""
    samples: dict[str, list[Sample]] = {name: [] for name in definitions}
    for name, labels, value in found:
        samples[name].append(Sample(labels, value))
    return [Family(definitions[name], each) for name, each in samples.items() if each]
