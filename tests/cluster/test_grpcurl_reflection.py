"""The session of docs/grpcurl.md as grpcurl itself does it: gRPC, reflection and JSON, and no code of ours.

Messages are built from the server's reflection, and the requests are read from the page. A gRPC library of any language
can do the same.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import MethodDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from support.server_process import running_server

pytestmark = pytest.mark.process

PAGE = (Path(__file__).parents[2] / "docs" / "grpcurl.md").read_text()


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[grpc.Channel]:
    with (
        running_server(tmp_path_factory.mktemp("reflection") / "data") as server,
        grpc.insecure_channel(server.endpoint) as opened,
    ):
        yield opened


class Grpcurl:
    """Calls a method by its name with a JSON request, by reflection."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self._database = ProtoReflectionDescriptorDatabase(channel)
        self._pool = DescriptorPool(self._database)

    def services(self) -> set[str]:
        return set(self._database.get_services())

    def call(self, path: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The replies; of a watch, which has no end, those up to the first with changes."""
        service, name = path.split("/")
        method = self._pool.FindServiceByName(service).methods_by_name[name]
        declared = MethodDescriptorProto()
        method.CopyToProto(declared)
        streams = declared.server_streaming
        make = self._channel.unary_stream if streams else self._channel.unary_unary
        stub = make(
            f"/{path}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        replies = stub(json_format.ParseDict(request, GetMessageClass(method.input_type)()), timeout=10)
        if service != "cortado.v1.Watch":
            return [json_format.MessageToDict(reply) for reply in (replies if streams else [replies])]
        found = []
        for reply in replies:
            found.append(json_format.MessageToDict(reply))
            if "changes" in found[-1]:
                replies.cancel()
                return found
        raise AssertionError("the watch ended")


@pytest.fixture(scope="module")
def grpcurl(channel: grpc.Channel) -> Grpcurl:
    return Grpcurl(channel)


def calls_of_the_page() -> list[tuple[str, dict[str, Any]]]:
    """(method, request) of every grpcurl command with data, in order."""
    calls = []
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S):
        for command in re.split(r"^(?=grpcurl )", block.replace("\\\n", " "), flags=re.M):
            words = shlex.split(command)
            if "-d" in words:
                calls.append((words[-1], json.loads(words[words.index("-d") + 1])))
    return calls


def test_the_session_of_the_page_works_by_reflection(grpcurl: Grpcurl) -> None:
    answers = {path: grpcurl.call(path, request) for path, request in calls_of_the_page()}
    assert list(answers) == [
        "cortado.v1.Schemas/Register",
        "cortado.v1.Tables/CreateDatabase",
        "cortado.v1.Tables/CreateTable",
        "cortado.v1.Documents/Put",
        "cortado.v1.Documents/Get",
        "cortado.v1.Documents/Scan",
        "cortado.v1.Watch/Table",
    ]
    assert answers["cortado.v1.Schemas/Register"][0]["created"] is True
    created = answers["cortado.v1.Tables/CreateTable"][0]
    assert created["table"]["key"] == [{"path": "carrier", "type": "KEY_TYPE_STRING"}]
    got = answers["cortado.v1.Documents/Get"][0]
    assert json.loads(got["found"]["document"]["json"]) == {"carrier": "UA", "name": "United"}
    assert got["found"]["etag"] == answers["cortado.v1.Documents/Put"][0]["etag"]
    rows = [row for reply in answers["cortado.v1.Documents/Scan"] for row in reply.get("jsonRows", [])]
    assert [json.loads(row)["carrier"] for row in rows] == ["UA"]
    (change,) = answers["cortado.v1.Watch/Table"][-1]["changes"]
    # Put is the default of its kind, and JSON leaves defaults out.
    assert "kind" not in change
    assert change["key"] == {"parts": [{"string": "UA"}]}
    assert json.loads(change["document"]["json"]) == {"carrier": "UA", "name": "United"}
    assert change["etag"] == got["found"]["etag"]


def test_reflection_lists_every_service(grpcurl: Grpcurl) -> None:
    ours = {
        f"cortado.v1.{name}"
        for name in ("Calls", "Cluster", "Documents", "KeyValue", "Schemas", "Tables", "Transactions", "Watch")
    }
    assert ours | {"grpc.health.v1.Health"} <= grpcurl.services()


def test_health_says_serving_for_the_server_and_each_service(channel: grpc.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
    for service in ("", "cortado.v1.Documents", "cortado.v1.KeyValue"):
        reply = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_a_page_token_goes_on_where_the_page_ended(grpcurl: Grpcurl) -> None:
    for i in range(5):
        grpcurl.call("cortado.v1.KeyValue/Put", {"namespace": "raw", "key": f"{i:04}", "value": "AA=="})
    keys: list[str] = []
    request: dict[str, Any] = {"namespace": "raw", "pageSize": 2}
    for expected in (2, 2, 1):
        replies = grpcurl.call("cortado.v1.KeyValue/Scan", request)
        found = [pair["key"] for reply in replies for pair in reply.get("pairs", [])]
        assert len(found) == expected
        keys += found
        request["pageToken"] = replies[-1].get("nextPageToken", "")
    assert request["pageToken"] == ""
    assert len(set(keys)) == 5


def test_an_error_carries_details_that_any_language_reads(grpcurl: Grpcurl) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        grpcurl.call("cortado.v1.Tables/DescribeTable", {"database": "flights", "name": "planes"})
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert raised.value.details() == "no table flights.planes"
    details = dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
    info = error_details_pb2.ErrorInfo()
    assert status_pb2.Status.FromString(details).details[0].Unpack(info)
    assert (info.reason, info.domain) == ("NOT_FOUND", "cortado.v1")
    assert dict(info.metadata) == {"kind": "table", "name": "flights.planes"}
    assert '"metadata": {"kind": "table", "name": "flights.planes"}' in PAGE
