"""The ``.proto`` files and the stubs that ``make proto`` generates; :mod:`cortado.proto.v1` is the public API."""

from __future__ import annotations

from importlib import import_module

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message


def message_class(descriptor: Descriptor) -> type[Message]:
    """The generated class of a message of ours, which is not declared inside of another.

    protobuf has functions for this, but not the same ones in all the versions that we run with: the stubs' own names
    are what each of them has (docs/adr/0017-old-protobuf-and-grpc.md).
    """
    module = descriptor.file.name.removesuffix(".proto").replace("/", ".") + "_pb2"
    found: type[Message] = getattr(import_module(module), descriptor.name)
    return found
