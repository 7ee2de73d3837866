from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Member(_message.Message):
    __slots__ = ("node_id", "peer_address", "storage_id", "address")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    peer_address: str
    storage_id: str
    address: str
    def __init__(self, node_id: _Optional[str] = ..., peer_address: _Optional[str] = ..., storage_id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class Configuration(_message.Message):
    __slots__ = ("voters", "learners")
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    voters: _containers.RepeatedScalarFieldContainer[str]
    learners: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, voters: _Optional[_Iterable[str]] = ..., learners: _Optional[_Iterable[str]] = ...) -> None: ...

class Registry(_message.Message):
    __slots__ = ("nodes", "removed")
    NODES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Member]
    removed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., removed: _Optional[_Iterable[str]] = ...) -> None: ...

class Roster(_message.Message):
    __slots__ = ("configuration", "registry")
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_FIELD_NUMBER: _ClassVar[int]
    configuration: Configuration
    registry: Registry
    def __init__(self, configuration: _Optional[_Union[Configuration, _Mapping]] = ..., registry: _Optional[_Union[Registry, _Mapping]] = ...) -> None: ...

class HardState(_message.Message):
    __slots__ = ("format", "term", "voted_for", "base_index", "base_term", "base_roster", "owner")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    VOTED_FOR_FIELD_NUMBER: _ClassVar[int]
    BASE_INDEX_FIELD_NUMBER: _ClassVar[int]
    BASE_TERM_FIELD_NUMBER: _ClassVar[int]
    BASE_ROSTER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    format: int
    term: int
    voted_for: str
    base_index: int
    base_term: int
    base_roster: Roster
    owner: str
    def __init__(self, format: _Optional[int] = ..., term: _Optional[int] = ..., voted_for: _Optional[str] = ..., base_index: _Optional[int] = ..., base_term: _Optional[int] = ..., base_roster: _Optional[_Union[Roster, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class StoredEntry(_message.Message):
    __slots__ = ("term", "kind", "body")
    TERM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    term: int
    kind: int
    body: bytes
    def __init__(self, term: _Optional[int] = ..., kind: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class RaftMessage(_message.Message):
    __slots__ = ("term", "sent_ms", "echo_ms", "fresh_index", "incarnation", "append", "heartbeat", "acknowledgement", "vote_request", "vote_response", "timeout_now", "snapshot", "inquiry", "finding")
    TERM_FIELD_NUMBER: _ClassVar[int]
    SENT_MS_FIELD_NUMBER: _ClassVar[int]
    ECHO_MS_FIELD_NUMBER: _ClassVar[int]
    FRESH_INDEX_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGEMENT_FIELD_NUMBER: _ClassVar[int]
    VOTE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    VOTE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_NOW_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    INQUIRY_FIELD_NUMBER: _ClassVar[int]
    FINDING_FIELD_NUMBER: _ClassVar[int]
    term: int
    sent_ms: float
    echo_ms: float
    fresh_index: int
    incarnation: int
    append: AppendEntries
    heartbeat: Heartbeat
    acknowledgement: Acknowledgement
    vote_request: VoteRequest
    vote_response: VoteResponse
    timeout_now: TimeoutNow
    snapshot: SnapshotNotice
    inquiry: Inquiry
    finding: Finding
    def __init__(self, term: _Optional[int] = ..., sent_ms: _Optional[float] = ..., echo_ms: _Optional[float] = ..., fresh_index: _Optional[int] = ..., incarnation: _Optional[int] = ..., append: _Optional[_Union[AppendEntries, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., acknowledgement: _Optional[_Union[Acknowledgement, _Mapping]] = ..., vote_request: _Optional[_Union[VoteRequest, _Mapping]] = ..., vote_response: _Optional[_Union[VoteResponse, _Mapping]] = ..., timeout_now: _Optional[_Union[TimeoutNow, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotNotice, _Mapping]] = ..., inquiry: _Optional[_Union[Inquiry, _Mapping]] = ..., finding: _Optional[_Union[Finding, _Mapping]] = ...) -> None: ...

class AppendEntries(_message.Message):
    __slots__ = ("prev_index", "prev_term", "commit_index", "round", "records")
    PREV_INDEX_FIELD_NUMBER: _ClassVar[int]
    PREV_TERM_FIELD_NUMBER: _ClassVar[int]
    COMMIT_INDEX_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    prev_index: int
    prev_term: int
    commit_index: int
    round: int
    records: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, prev_index: _Optional[int] = ..., prev_term: _Optional[int] = ..., commit_index: _Optional[int] = ..., round: _Optional[int] = ..., records: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("commit_index", "round")
    COMMIT_INDEX_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    commit_index: int
    round: int
    def __init__(self, commit_index: _Optional[int] = ..., round: _Optional[int] = ...) -> None: ...

class Acknowledgement(_message.Message):
    __slots__ = ("matched_index", "wanted_index", "heard", "rejected_prev_index", "round", "doubted_index", "doubted_key", "room")
    MATCHED_INDEX_FIELD_NUMBER: _ClassVar[int]
    WANTED_INDEX_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    REJECTED_PREV_INDEX_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DOUBTED_INDEX_FIELD_NUMBER: _ClassVar[int]
    DOUBTED_KEY_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    matched_index: int
    wanted_index: int
    heard: bool
    rejected_prev_index: int
    round: int
    doubted_index: int
    doubted_key: bytes
    room: Room
    def __init__(self, matched_index: _Optional[int] = ..., wanted_index: _Optional[int] = ..., heard: bool = ..., rejected_prev_index: _Optional[int] = ..., round: _Optional[int] = ..., doubted_index: _Optional[int] = ..., doubted_key: _Optional[bytes] = ..., room: _Optional[_Union[Room, _Mapping]] = ...) -> None: ...

class Room(_message.Message):
    __slots__ = ("bytes", "freeing_bytes")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    FREEING_BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    freeing_bytes: int
    def __init__(self, bytes: _Optional[int] = ..., freeing_bytes: _Optional[int] = ...) -> None: ...

class VoteRequest(_message.Message):
    __slots__ = ("term", "is_pre_vote", "last_index", "last_term", "is_transfer")
    TERM_FIELD_NUMBER: _ClassVar[int]
    IS_PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_TERM_FIELD_NUMBER: _ClassVar[int]
    IS_TRANSFER_FIELD_NUMBER: _ClassVar[int]
    term: int
    is_pre_vote: bool
    last_index: int
    last_term: int
    is_transfer: bool
    def __init__(self, term: _Optional[int] = ..., is_pre_vote: bool = ..., last_index: _Optional[int] = ..., last_term: _Optional[int] = ..., is_transfer: bool = ...) -> None: ...

class VoteResponse(_message.Message):
    __slots__ = ("term", "is_pre_vote", "is_granted")
    TERM_FIELD_NUMBER: _ClassVar[int]
    IS_PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    IS_GRANTED_FIELD_NUMBER: _ClassVar[int]
    term: int
    is_pre_vote: bool
    is_granted: bool
    def __init__(self, term: _Optional[int] = ..., is_pre_vote: bool = ..., is_granted: bool = ...) -> None: ...

class TimeoutNow(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SnapshotNotice(_message.Message):
    __slots__ = ("snapshot_id", "index", "term", "roster", "size_bytes")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    ROSTER_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    index: int
    term: int
    roster: Roster
    size_bytes: int
    def __init__(self, snapshot_id: _Optional[str] = ..., index: _Optional[int] = ..., term: _Optional[int] = ..., roster: _Optional[_Union[Roster, _Mapping]] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class Inquiry(_message.Message):
    __slots__ = ("index",)
    INDEX_FIELD_NUMBER: _ClassVar[int]
    index: int
    def __init__(self, index: _Optional[int] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("index", "is_committed", "entry_term", "leader", "voted_for", "last_index")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    IS_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    ENTRY_TERM_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    VOTED_FOR_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    index: int
    is_committed: bool
    entry_term: int
    leader: str
    voted_for: str
    last_index: int
    def __init__(self, index: _Optional[int] = ..., is_committed: bool = ..., entry_term: _Optional[int] = ..., leader: _Optional[str] = ..., voted_for: _Optional[str] = ..., last_index: _Optional[int] = ...) -> None: ...
