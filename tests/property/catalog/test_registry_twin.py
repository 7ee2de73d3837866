"""The registry against a dumb twin: lists that remember everything that was ever registered."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog.deletion import delete_versions
from cortado.store.catalog.registry import set_compatibility, set_default_compatibility
from support.catalog_store import CatalogStore

SUBJECTS = ("a", "b")
# The first two are one schema to a subject, and two texts.
TEXTS = ('"long"', '{"type": "long", "doc": "seconds"}', '"string"', '{"type": "array", "items": "long"}')
MEANINGS = (0, 0, 1, 2)

Step = tuple[str, str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.sampled_from(SUBJECTS), st.integers(0, len(TEXTS) - 1)),
        st.tuples(st.sampled_from(["delete", "forget"]), st.sampled_from(SUBJECTS), st.integers(0, 4)),
        st.tuples(st.just("mode"), st.sampled_from(SUBJECTS), st.integers(0, 1)),
    ),
    max_size=25,
)


@dataclass
class Twin:
    """Per subject ``[version, text, state]`` of all that ever was, the state live, deleted or forgotten."""

    ids: list[int] = field(default_factory=list)
    history: dict[str, list[tuple[int, int, str]]] = field(default_factory=lambda: {each: [] for each in SUBJECTS})

    def versions(self, subject: str, *states: str) -> list[int]:
        return [version for version, _, state in self.history[subject] if state in states]

    def register(self, subject: str, text: int) -> tuple[int, int, bool]:
        """Return version, schema id, and whether it is new."""
        for version, held, state in self.history[subject]:
            if state == "live" and MEANINGS[held] == MEANINGS[text]:
                return version, self.ids.index(held) + 1, False
        if text not in self.ids:
            self.ids.append(text)
        self.history[subject].append((len(self.history[subject]) + 1, text, "live"))
        return len(self.history[subject]), self.ids.index(text) + 1, True

    def delete(self, subject: str, version: int, *, permanent: bool) -> list[int] | None:
        """Return the deleted versions, or None if the delete is refused."""
        if not permanent:
            chosen = [each for each in self.versions(subject, "live") if version in (0, each)]
        else:
            chosen = [each for each in self.versions(subject, "live", "deleted") if version in (0, each)]
            if any(each in chosen for each in self.versions(subject, "live")):
                return None
        after = "forgotten" if permanent else "deleted"
        self.history[subject] = [(v, t, after if v in chosen else s) for v, t, s in self.history[subject]]
        return chosen or None


def delete(store: CatalogStore, subject: str, version: int, *, permanent: bool) -> list[int] | None:
    before = dict(store.store.versions)
    try:
        return [*store.write(delete_versions, subject, version, permanent=permanent).versions]
    except (NotFound, InvalidArgument):
        assert store.store.versions == before
        return None


@given(STEPS)
def test_ids_name_texts_and_versions_are_never_used_again(steps: list[Step]) -> None:
    store, twin = CatalogStore(), Twin()
    store.write(set_default_compatibility, CompatibilityMode.NONE)
    for action, subject, number in steps:
        if action == "register":
            found = store.register(subject, TEXTS[number])
            version, schema_id, created = twin.register(subject, number)
            assert (found.version.version, found.version.schema.schema_id) == (version, schema_id)
            assert found.created == created
        elif action == "mode":
            # Version numbers count on, for any changes beside the versions.
            if number or store.catalog().find_subject(subject) is not None:
                store.write(set_compatibility, subject, CompatibilityMode.NONE if number else None)
        else:
            permanent = action == "forget"
            assert delete(store, subject, number, permanent=permanent) == twin.delete(
                subject, number, permanent=permanent
            )
        check(store, twin)


def check(store: CatalogStore, twin: Twin) -> None:
    catalog = store.catalog()
    for subject in SUBJECTS:
        state = catalog.find_subject(subject)
        versions = () if state is None else state.versions
        assert [each.version for each in versions] == twin.versions(subject, "live", "deleted")
        assert [each.version for each in versions if not each.deleted] == twin.versions(subject, "live")
    for place, text in enumerate(twin.ids, start=1):
        assert catalog.registered_schema(place).text == TEXTS[text]
