"""The session of ``docs/grpcurl.md``, call by call, against a server: what grpcurl would send, through raw stubs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from cortado.proto.v1 import cluster_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from support.server_process import running_server

pytestmark = pytest.mark.process

PAGE = Path(__file__).parents[2] / "docs" / "grpcurl.md"
CALL = re.compile(r"grpcurl -plaintext -d '((?:[^']|'\\'')*)' (?:\\\n\s*)?127\.0\.0\.1:7621 (cortado\.v1\.\w+)/(\w+)")
MODULES = (cluster_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2)


def calls() -> list[tuple[str, str, str]]:
    """Service, method and JSON of every call on the page, in order."""
    return [(m[2], m[3], m[1].replace("'\\''", "'")) for m in CALL.finditer(PAGE.read_text())]


def method_of(service: str, name: str) -> MethodDescriptor:
    short = service.rpartition(".")[2]
    module = next(each for each in MODULES if short in each.DESCRIPTOR.services_by_name)
    method: MethodDescriptor = module.DESCRIPTOR.services_by_name[short].methods_by_name[name]
    return method


def send(channel: grpc.Channel, service: str, name: str, text: str) -> Iterator[Any]:
    method = method_of(service, name)
    request = json_format.Parse(text, GetMessageClass(method.input_type)())
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    reply = make(
        f"/{service}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )(request, timeout=10)
    return reply if method.server_streaming else iter([reply])


def test_the_page_has_calls() -> None:
    assert [name for _, name, _ in calls()] == ["Register", "CreateDatabase", "CreateTable", "Put", "Get", "Scan"]
    assert len(re.findall(r"grpcurl -plaintext -d", PAGE.read_text())) == len(calls()), "every call was understood"


def test_every_call_of_the_page_works_and_a_get_shows_what_was_put(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, grpc.insecure_channel(server.endpoint) as channel:
        replies = {name: list(send(channel, service, name, text)) for service, name, text in calls()}
        put = json.loads(json.loads(next(text for _, name, text in calls() if name == "Put"))["document"]["json"])
        assert json.loads(replies["Get"][0].found.document.json) == put
        assert [json.loads(row) for reply in replies["Scan"] for row in reply.json_rows] == [put]
