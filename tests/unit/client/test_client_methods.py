"""Which methods only read is said in the API's own definition, and by each method."""

from __future__ import annotations

from cortado.store.client.stubs import Method, Stubs

METHODS: list[Method] = [
    method
    for service, methods in vars(Stubs).items()
    if not service.startswith("_")
    for method in vars(methods).values()
]


def test_what_has_a_request_id_changes_something() -> None:
    assert len(METHODS) > 60
    for each in METHODS:
        if "request_id" in each.request.DESCRIPTOR.fields_by_name:
            assert each.changes, each.name


def test_what_names_a_time_to_read_at_changes_nothing() -> None:
    repairs = "cortado.v1.Tables/CheckTable"
    assert [each.name for each in METHODS if each.is_read_at and each.changes] == [repairs]


def test_changes_without_a_request_id_are_known() -> None:
    found = {
        each.name.removeprefix("cortado.v1.")
        for each in METHODS
        if each.changes and not {"request_id", "at"} & set(each.request.DESCRIPTOR.fields_by_name)
    }
    assert found == {
        *("Calls/Exchange", "Documents/Bulk", "Collection/KeepLease", "Collection/Run"),
        *("Restores/Begin", "Restores/Put", "Restores/End", "Restores/Abandon"),
        *("Cluster/AddMember", "Cluster/PromoteMember", "Cluster/RemoveMember"),
        *("Cluster/RebuildReplica", "Cluster/TransferLeader"),
        *("LargeTransactions/Begin", "LargeTransactions/Commit", "LargeTransactions/Abort"),
    }
