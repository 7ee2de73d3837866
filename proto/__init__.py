"""The ``.proto`` files and the stubs that ``make proto`` generates; :mod:`cortado.proto.v1` is the public API.

What is asked of descriptors is asked here, in ways that every version of protobuf has that we run with
(docs/adr/0018-old-protobuf-and-grpc.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodDescriptorProto
from google.protobuf.message import Message


class Streams(NamedTuple):
    """Which side of a method sends more than one message."""

    client: bool
    server: bool


def message_class(descriptor: Descriptor) -> type[Message]:
    """The generated class of a message of ours, which is not declared inside of another.

    By its stub's name: protobuf has functions for this, but none that both 4.21 and 7 have.
    """
    module = descriptor.file.name.removesuffix(".proto").replace("/", ".") + "_pb2"
    found: type[Message] = getattr(import_module(module), descriptor.name)
    return found


def streams_of(method: MethodDescriptor) -> Streams:
    """From the declaration: protobuf's own descriptors do not tell before 4.25."""
    declared = MethodDescriptorProto()
    method.CopyToProto(declared)
    return Streams(declared.client_streaming, declared.server_streaming)
