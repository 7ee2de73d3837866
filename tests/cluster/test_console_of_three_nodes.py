"""The console before three nodes: leadership moves, members come and go, and a leader that is lost is told as such."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster import Cluster, running_cluster
from support.console_forms import act, form_of, get, path_of, send, text_of
from support.gateways import Gateway, gateway_before

pytestmark = [pytest.mark.process, pytest.mark.long]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture
def console(cluster: Cluster) -> Iterator[Gateway]:
    with gateway_before(cluster.endpoints, acts_without_roles=True) as made:
        yield made


def test_leadership_is_handed_over_and_a_form_of_before_counts_no_more(cluster: Cluster, console: Gateway) -> None:
    leader = cluster.leader()
    first, second = [name for name in cluster.nodes if name != leader]
    stale = path_of("transfer-leader", node=second)
    form = form_of(get(console, stale))
    assert f"{first} leads" in act(console, "transfer-leader", node=first)
    assert cluster.leader() == first
    answer = send(console, stale, {"form": form})
    assert answer.status_code == 409
    assert "the page showed an older state" in text_of(answer)
    assert cluster.leader() == first
    assert f"{leader} leads" in act(console, "transfer-leader", node=leader)


def test_a_member_that_is_removed_is_told_of_on_the_page(cluster: Cluster, console: Gateway) -> None:
    cluster.add("n4")
    assert "warn number of voters 4 an even number of voters" in text_of(get(console, "/ui"))
    assert "n4 is no member any more" in act(console, "remove-member", {"typed": "n4"}, node="n4")
    cluster.nodes.pop("n4").kill()
    del cluster.addresses["n4"]
    assert "n4" not in text_of(get(console, "/ui"))


def test_a_member_is_rebuilt(cluster: Cluster, console: Gateway) -> None:
    follower = next(name for name in cluster.nodes if name != cluster.leader())
    assert f"{follower} has the same data as the other member" in act(console, "rebuild-member", node=follower)


def test_a_leader_that_is_lost_in_the_middle_is_no_failure_and_no_success(cluster: Cluster, console: Gateway) -> None:
    # The last one: a majority is gone.
    path = path_of("create-database")
    form = form_of(get(console, path))
    leader = cluster.leader()
    other = next(name for name in cluster.nodes if name != leader)
    cluster.pause(leader)
    cluster.pause(other)
    answer = send(console, path, {"form": form, "database": "perhaps"})
    assert answer.status_code in (503, 504), answer.text
    assert "was created" not in text_of(answer)
    page = text_of(get(console, "/ui"))
    assert "Who you are cannot be said now" in page
    cluster.resume(leader)
    cluster.resume(other)
    cluster.leader()
    # The very form may be sent again: whether or not the first was done, it is done once.
    assert "Database perhaps was created" in text_of(send(console, path, {"form": form, "database": "perhaps"}))
