"""Write the reference of the public API from the comments of its ``.proto`` files: a page for each file, and an index.

Run by tools/generate_stubs.sh: ``api_reference.py DESCRIPTOR_SET FOLDER``; the set comes from protoc with its source
info. A part without a comment gets an empty cell, which a test finds (tests/unit/test_api_reference.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

PACKAGE = "cortado.v1"
TITLE = "# The API, `cortado.v1`"
GENERATED = "<!-- Generated from {source} by tools/api_reference.py (make proto): change it there. -->"

# Numbers of fields in descriptor.proto, which make up the paths of comments.
MESSAGE, ENUM, SERVICE, SYNTAX = 4, 5, 6, 12
FIELD, NESTED, NESTED_ENUM, VALUE, METHOD = 2, 3, 4, 2, 2

KINDS = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string",
    12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64",
}  # fmt: skip
REPEATED = 3


class Comments:
    """The comments on each part of a file."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._of = {
            tuple(each.path): each.leading_comments or each.trailing_comments for each in file.source_code_info.location
        }

    def __call__(self, *path: int) -> str:
        """Return paragraphs of one line each, between empty lines; empty if there is no comment."""
        lines = [line.strip() for line in self._of.get(path, "").strip().splitlines()]
        paragraphs = re.split(r"\n{2,}", "\n".join(lines))
        return "\n\n".join(" ".join(each.split("\n")) for each in paragraphs).strip()


class Reference:
    """All pages. ``homes`` says on which page a type is described."""

    def __init__(self, files: Sequence[FileDescriptorProto]) -> None:
        self._files = files
        self._homes = {f".{PACKAGE}.{name}": _page(file) for file in files for name, _, _ in _messages(file)}
        self._homes |= {f".{PACKAGE}.{name}": _page(file) for file in files for name, _, _ in _enums(file)}

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield file names and texts."""
        yield "README.md", self._index()
        for file in self._files:
            yield _page(file), "\n".join(self._lines(file)).rstrip() + "\n"

    def _index(self) -> str:
        lines = [GENERATED.format(source="proto/v1/"), TITLE, ""]
        lines += [
            "Every service, call, message and field, from the comments in [`proto/v1`](../../proto/v1/). How a client",
            "in another language goes about it: [other languages](../other-languages.md).",
            "",
        ]
        for file in self._files:
            comments = Comments(file)
            for number, service in enumerate(file.service):
                page = _page(file)
                lines += [
                    f"## [{service.name}]({page})",
                    "",
                    comments(SERVICE, number),
                    "",
                    "| call | |",
                    "| --- | --- |",
                ]
                for at, method in enumerate(service.method):
                    said = _first_sentence(comments(SERVICE, number, METHOD, at))
                    lines.append(f"| [`{method.name}`]({page}#{_anchor(f'{service.name}.{method.name}')}) | {said} |")
                lines.append("")
        without = [file for file in self._files if not file.service]
        lines += ["## Shared messages", "", *(f"- [{_page(each)}]({_page(each)})" for each in without)]
        return "\n".join(lines).rstrip() + "\n"

    def _lines(self, file: FileDescriptorProto) -> Iterator[str]:
        comments = Comments(file)
        source = f"proto/v1/{Path(file.name).name}"
        yield GENERATED.format(source=source)
        yield f"# `{PACKAGE}`: {Path(file.name).stem}"
        yield ""
        yield comments(SYNTAX)
        yield ""
        yield f"Source: [`{source}`](../../{source}). All of the API: [index](README.md)."
        for number, service in enumerate(file.service):
            yield from ("", f"## Service {service.name}", "", comments(SERVICE, number))
            for at, method in enumerate(service.method):
                asked = ("stream " if method.client_streaming else "") + self._type(method.input_type, file)
                answered = ("stream " if method.server_streaming else "") + self._type(method.output_type, file)
                yield from ("", f"### {service.name}.{method.name}", "", f"{asked} → {answered}")
                yield from ("", comments(SERVICE, number, METHOD, at))
        for name, path, message in _messages(file):
            yield from ("", f"### {name}", "", comments(*path) or self._role(f".{PACKAGE}.{name}", file))
            yield from self._fields(message, path, comments, file)
        for name, path, enum in _enums(file):
            yield from ("", f"### {name}", "", comments(*path), "", "| value | | |", "| --- | --- | --- |")
            for at, value in enumerate(enum.value):
                yield f"| `{value.name}` | {value.number} | {_cell(comments(*path, VALUE, at))} |"

    def _fields(
        self, message: Any, path: Sequence[int], comments: Comments, file: FileDescriptorProto
    ) -> Iterator[str]:
        if not message.field:
            return
        yield from ("", "| field | type | |", "| --- | --- | --- |")
        for at, field in enumerate(message.field):
            shown = self._shown(field, message, file)
            yield f"| `{field.name}` = {field.number} | {shown} | {_cell(comments(*path, FIELD, at))} |"

    def _shown(self, field: Any, message: Any, file: FileDescriptorProto) -> str:
        """Return a field's type."""
        for nested in message.nested_type:
            if nested.options.map_entry and field.type_name.endswith(f".{message.name}.{nested.name}"):
                key, value = (KINDS[each.type] for each in nested.field)
                return f"map of {key} to {value}"
        shown = KINDS.get(field.type) or self._type(field.type_name, file)
        if field.label == REPEATED:
            return f"repeated {shown}"
        if field.proto3_optional:
            return f"optional {shown}"
        if field.HasField("oneof_index"):
            return f"{shown}, one of `{message.oneof_decl[field.oneof_index].name}`"
        return shown

    def _role(self, name: str, file: FileDescriptorProto) -> str:
        """Return the links to the calls that take or give a message."""
        roles = []
        for service in file.service:
            for method in service.method:
                call = f"{service.name}.{method.name}"
                if name in (method.input_type, method.output_type):
                    verb = "Asks" if name == method.input_type else "Comes from"
                    roles.append(f"{verb} [{call}](#{_anchor(call)}).")
        return " ".join(roles)

    def _type(self, name: str, file: FileDescriptorProto) -> str:
        home, short = self._homes[name], name.removeprefix(f".{PACKAGE}.")
        return f"[{short}]({'' if home == _page(file) else home}#{_anchor(short)})"


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Yield names, paths of comments, and the messages; those within others after them."""

    def below(name: str, path: tuple[int, ...], message: Any) -> Iterator[tuple[str, tuple[int, ...], Any]]:
        yield name, path, message
        for at, nested in enumerate(message.nested_type):
            if nested.options.map_entry:
                continue
            yield from below(f"{name}.{nested.name}", (*path, NESTED, at), nested)

    for number, message in enumerate(file.message_type):
        yield from below(message.name, (MESSAGE, number), message)


def _enums(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    for number, enum in enumerate(file.enum_type):
        yield enum.name, (ENUM, number), enum
    for name, path, message in _messages(file):
        for at, enum in enumerate(message.enum_type):
            yield f"{name}.{enum.name}", (*path, NESTED_ENUM, at), enum


def _page(file: FileDescriptorProto) -> str:
    return Path(file.name).with_suffix(".md").name


def _anchor(heading: str) -> str:
    """Return the anchor that renderers make of a heading."""
    return heading.lower().replace(".", "").replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("\n\n", "<br>").replace("|", "\\|")


def _first_sentence(text: str) -> str:
    return _cell(re.split(r"(?<=[.:]) ", text.split("\n\n")[0], maxsplit=1)[0])


def main(arguments: Sequence[str]) -> None:
    descriptors, folder = arguments
    files = FileDescriptorSet.FromString(Path(descriptors).read_bytes()).file
    ours = sorted((file for file in files if file.package == PACKAGE), key=lambda file: file.name)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    pages = dict(Reference(ours).pages())
    for stale in set(out.glob("*.md")) - {out / name for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
