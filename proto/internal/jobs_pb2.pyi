from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class StoredJob(_message.Message):
    __slots__ = ("job_id", "kind", "target", "parameters", "state", "cursor", "done", "total", "created_ts", "ended_ts", "error", "principal")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CREATED_TS_FIELD_NUMBER: _ClassVar[int]
    ENDED_TS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    kind: str
    target: str
    parameters: bytes
    state: str
    cursor: bytes
    done: int
    total: int
    created_ts: bytes
    ended_ts: bytes
    error: str
    principal: str
    def __init__(self, job_id: _Optional[int] = ..., kind: _Optional[str] = ..., target: _Optional[str] = ..., parameters: _Optional[bytes] = ..., state: _Optional[str] = ..., cursor: _Optional[bytes] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., created_ts: _Optional[bytes] = ..., ended_ts: _Optional[bytes] = ..., error: _Optional[str] = ..., principal: _Optional[str] = ...) -> None: ...

class StoredJobs(_message.Message):
    __slots__ = ("next_job_id",)
    NEXT_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    next_job_id: int
    def __init__(self, next_job_id: _Optional[int] = ...) -> None: ...

class StoredIndexBuild(_message.Message):
    __slots__ = ("table_id", "index_id", "database", "table")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    index_id: int
    database: str
    table: str
    def __init__(self, table_id: _Optional[int] = ..., index_id: _Optional[int] = ..., database: _Optional[str] = ..., table: _Optional[str] = ...) -> None: ...
