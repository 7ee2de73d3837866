"""The answer of ``cortado debug raft``: the stored log of one node, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.cli.failures import DAMAGE, OK
from cortado.store.cli.inspecting import key_json, shown_ts
from cortado.store.cli.render import Renderer, count, moment
from cortado.store.client.inspect import Inspected
from cortado.store.client.values import timestamp_of
from cortado.store.keys.decoded import NO_NAMES, decode_key
from cortado.store.settings.sizes import size_text


def entries_of(node: Inspected, request: pb.ReadLogRequest, limit: int | None) -> Iterator[pb.LogEntry]:
    """Page after page, at most ``limit``."""
    left = limit
    while left is None or left > 0:
        reply = node.read_log(request)
        yield from reply.entries[:left]
        if not reply.next_page_token:
            return
        left = None if left is None else left - len(reply.entries)
        request.page_token = reply.next_page_token


# --- for people ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LogAnswer:
    """A log's state, and its entries as they come; damaged ones are counted while they are shown."""

    name: str
    state: pb.LogState
    entries: Iterator[pb.LogEntry]
    damaged: int = 0

    @property
    def exit_code(self) -> int:
        return DAMAGE if self.damaged else OK

    def as_json(self) -> Iterator[Any]:
        yield {"state": _state_json(self.state)}
        for entry in self.entries:
            self.damaged += bool(entry.problem)
            yield {"entry": _entry_json(entry)}

    def as_table(self, show: Renderer) -> None:
        show.record(_state_pairs(self.name, self.state))
        rows: list[Sequence[Any]] = []
        shown = 0
        for entry in self.entries:
            shown += 1
            self.damaged += bool(entry.problem)
            rows += _rows(entry)
        if rows:
            show.table(("index", "term", "kind", "bytes", "timestamp", "request", "change"), rows)
        show.note(count(shown, "entry", "entries") + (f", {self.damaged} damaged" if self.damaged else ""))


def _state_pairs(name: str, state: pb.LogState) -> list[tuple[str, Any]]:
    stored = f"{state.first_index} to {state.last_index}" if state.last_index else "none"
    pairs = [
        ("node", name),
        ("group", state.group_id),
        ("term", state.term),
        ("voted for", state.voted_for or "nobody in this term"),
        ("base", f"entry {state.base_index} of term {state.base_term}"),
        ("members at the base", _members(state.base_configuration) or "none"),
        ("nodes at the base", _nodes(state.base_registry) or "none"),
        ("entries", stored),
        ("applied", f"entry {state.applied_index} of term {state.applied_term}"),
        ("timestamp", moment(timestamp_of(state.last_timestamp))),
        ("ceiling", moment(timestamp_of(state.ceiling))),
        ("requests remembered", f"{state.requests:,} ({size_text(state.request_bytes)})"),
    ]
    return [*pairs, ("data", f"no state: {state.installing}")] if state.installing else pairs


def _members(configuration: pb.LogConfiguration) -> str:
    return ", ".join([*configuration.voters, *(f"{each} (learner)" for each in configuration.learners)])


def _nodes(registry: pb.LogRegistry) -> str:
    nodes = [f"{each.node_id} {each.peer_address}" for each in registry.nodes]
    return ", ".join([*nodes, *(f"{each} (removed)" for each in registry.removed)])


def _rows(entry: pb.LogEntry) -> Iterator[Sequence[Any]]:
    """Yield the rows of an entry; its own columns stand in the first row only."""
    lead: tuple[Any, ...] = (entry.index, entry.term, entry.kind, entry.stored_bytes)
    for cells in _details(entry):
        yield (*lead, *cells)
        lead = ("", "", "", "")


def _details(entry: pb.LogEntry) -> Iterator[tuple[str, str, str]]:
    if entry.kind != "data":
        yield "", "", entry.problem or _members(entry.configuration) or _nodes(entry.registry)
        return
    shown = 0
    for command_ in entry.commands:
        lead = shown_ts(command_.timestamp) or "", command_.request_id.hex()
        for change in command_.changes:
            key = change.key.text.rpartition(" @")[0] or change.key.text
            held = f", {count(change.payload_bytes, 'byte')}" if change.payload_bytes else ""
            yield (*lead, f"delete {key}" if change.is_delete else f"put {key}{held}")
            lead = "", ""
            shown += 1
        if not command_.change_count:
            yield (*lead, _control(entry))
    if entry.change_count > shown:
        yield "", "", f"... and {count(entry.change_count - shown, 'change')} more (--changes)"


def _control(entry: pb.LogEntry) -> str:
    if entry.bump_epoch:
        return f"epoch {entry.bump_epoch} begins"
    if entry.HasField("raise_ceiling"):
        return f"reads may go up to {shown_ts(entry.raise_ceiling)}"
    if entry.accepted_losses:
        return f"accepted the loss of {', '.join(key.hex() for key in entry.accepted_losses)}"
    return "no change"


# --- for scripts -----------------------------------------------------------------------------------------------


def _state_json(state: pb.LogState) -> dict[str, Any]:
    return {
        "group_id": state.group_id,
        "term": state.term,
        "voted_for": state.voted_for or None,
        "base_index": state.base_index,
        "base_term": state.base_term,
        "base_members": _members_json(state.base_configuration),
        "base_nodes": _nodes_json(state.base_registry),
        "first_index": state.first_index,
        "last_index": state.last_index,
        "applied_index": state.applied_index,
        "applied_term": state.applied_term,
        "timestamp": shown_ts(state.last_timestamp),
        "ceiling": shown_ts(state.ceiling),
        "epoch_began": shown_ts(state.epoch_began),
        "request_floor": state.request_floor.hex(),
        "requests": state.requests,
        "request_bytes": state.request_bytes,
        "installing": state.installing or None,
    }


def _members_json(configuration: pb.LogConfiguration) -> list[dict[str, Any]]:
    return [
        {"node_id": each, "voter": each in configuration.voters}
        for each in (*configuration.voters, *configuration.learners)
    ]


def _nodes_json(registry: pb.LogRegistry) -> dict[str, Any]:
    nodes = [
        {
            "node_id": each.node_id,
            "address": each.address,
            "peer_address": each.peer_address,
            "storage_id": each.storage_id,
        }
        for each in registry.nodes
    ]
    return {"nodes": nodes, "removed": list(registry.removed)}


def _entry_json(entry: pb.LogEntry) -> dict[str, Any]:
    found: dict[str, Any] = {
        "index": entry.index,
        "term": entry.term,
        "kind": entry.kind,
        "stored_bytes": entry.stored_bytes,
        "problem": entry.problem or None,
    }
    if entry.kind == "configuration":
        found["members"] = _members_json(entry.configuration)
    if entry.kind == "registry":
        found |= _nodes_json(entry.registry)
    if entry.kind == "data":
        found |= {
            "after_index": entry.after_index,
            "after_term": entry.after_term,
            "command_count": entry.command_count,
            "change_count": entry.change_count,
            "request_floor": entry.request_floor.hex() or None,
            "bump_epoch": entry.bump_epoch or None,
            "raise_ceiling": shown_ts(entry.raise_ceiling),
            "accepted_losses": [key.hex() for key in entry.accepted_losses],
            "commands": [_command_json(each) for each in entry.commands],
        }
    return found


def _command_json(command_: pb.LogCommand) -> dict[str, Any]:
    return {
        "timestamp": shown_ts(command_.timestamp),
        "request_id": command_.request_id.hex() or None,
        "reply_bytes": command_.reply_bytes,
        "change_count": command_.change_count,
        "changes": [
            {
                "delete": change.is_delete,
                "payload_bytes": change.payload_bytes,
                **({"expires_ms": change.expires_ms} if change.expires_ms else {}),
                **key_json(decode_key(change.key.key), NO_NAMES),
                "text": change.key.text,
            }
            for change in command_.changes
        ],
    }
