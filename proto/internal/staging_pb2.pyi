from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StoredLargeTransaction(_message.Message):
    __slots__ = ("state", "start", "label", "tables", "commit_timestamp", "attempts", "is_resolved", "cause", "application", "owner", "principal")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPEN: _ClassVar[StoredLargeTransaction.State]
        COMMITTED: _ClassVar[StoredLargeTransaction.State]
        ABORTED: _ClassVar[StoredLargeTransaction.State]
    OPEN: StoredLargeTransaction.State
    COMMITTED: StoredLargeTransaction.State
    ABORTED: StoredLargeTransaction.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    IS_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    state: StoredLargeTransaction.State
    start: bytes
    label: str
    tables: _containers.RepeatedCompositeFieldContainer[StoredStagedTable]
    commit_timestamp: bytes
    attempts: _containers.RepeatedScalarFieldContainer[int]
    is_resolved: bool
    cause: str
    application: str
    owner: str
    principal: str
    def __init__(self, state: _Optional[_Union[StoredLargeTransaction.State, str]] = ..., start: _Optional[bytes] = ..., label: _Optional[str] = ..., tables: _Optional[_Iterable[_Union[StoredStagedTable, _Mapping]]] = ..., commit_timestamp: _Optional[bytes] = ..., attempts: _Optional[_Iterable[int]] = ..., is_resolved: bool = ..., cause: _Optional[str] = ..., application: _Optional[str] = ..., owner: _Optional[str] = ..., principal: _Optional[str] = ...) -> None: ...

class StoredStagedTable(_message.Message):
    __slots__ = ("table_id", "database", "table", "index_ids")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_IDS_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    database: str
    table: str
    index_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, table_id: _Optional[int] = ..., database: _Optional[str] = ..., table: _Optional[str] = ..., index_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class StoredApplication(_message.Message):
    __slots__ = ("version", "owner")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    version: int
    owner: str
    def __init__(self, version: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...
