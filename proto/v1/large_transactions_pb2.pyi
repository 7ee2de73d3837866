from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LargeTransaction(_message.Message):
    __slots__ = ("transaction_id", "state", "start", "committed", "label", "tables", "is_resolved", "cause", "principal")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPEN: _ClassVar[LargeTransaction.State]
        COMMITTED: _ClassVar[LargeTransaction.State]
        ABORTED: _ClassVar[LargeTransaction.State]
    OPEN: LargeTransaction.State
    COMMITTED: LargeTransaction.State
    ABORTED: LargeTransaction.State
    TRANSACTION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    IS_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    transaction_id: bytes
    state: LargeTransaction.State
    start: _common_pb2.Timestamp
    committed: _common_pb2.Timestamp
    label: str
    tables: _containers.RepeatedCompositeFieldContainer[TransactionTable]
    is_resolved: bool
    cause: str
    principal: str
    def __init__(self, transaction_id: _Optional[bytes] = ..., state: _Optional[_Union[LargeTransaction.State, str]] = ..., start: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., committed: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., label: _Optional[str] = ..., tables: _Optional[_Iterable[_Union[TransactionTable, _Mapping]]] = ..., is_resolved: bool = ..., cause: _Optional[str] = ..., principal: _Optional[str] = ...) -> None: ...

class TransactionTable(_message.Message):
    __slots__ = ("database", "table")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ...) -> None: ...

class BeginLargeTransactionRequest(_message.Message):
    __slots__ = ("transaction_id", "tables", "ttl_ms", "label", "application", "version", "owner")
    TRANSACTION_ID_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    transaction_id: bytes
    tables: _containers.RepeatedCompositeFieldContainer[TransactionTable]
    ttl_ms: int
    label: str
    application: str
    version: int
    owner: str
    def __init__(self, transaction_id: _Optional[bytes] = ..., tables: _Optional[_Iterable[_Union[TransactionTable, _Mapping]]] = ..., ttl_ms: _Optional[int] = ..., label: _Optional[str] = ..., application: _Optional[str] = ..., version: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...

class CommitLargeTransactionRequest(_message.Message):
    __slots__ = ("transaction_id", "tasks", "attempts", "application", "version", "owner")
    TRANSACTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    transaction_id: bytes
    tasks: _containers.RepeatedScalarFieldContainer[int]
    attempts: _containers.RepeatedScalarFieldContainer[int]
    application: str
    version: int
    owner: str
    def __init__(self, transaction_id: _Optional[bytes] = ..., tasks: _Optional[_Iterable[int]] = ..., attempts: _Optional[_Iterable[int]] = ..., application: _Optional[str] = ..., version: _Optional[int] = ..., owner: _Optional[str] = ...) -> None: ...

class AbortLargeTransactionRequest(_message.Message):
    __slots__ = ("transaction_id",)
    TRANSACTION_ID_FIELD_NUMBER: _ClassVar[int]
    transaction_id: bytes
    def __init__(self, transaction_id: _Optional[bytes] = ...) -> None: ...

class LargeTransactionResponse(_message.Message):
    __slots__ = ("header", "transaction")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    transaction: LargeTransaction
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., transaction: _Optional[_Union[LargeTransaction, _Mapping]] = ...) -> None: ...

class ListLargeTransactionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLargeTransactionsResponse(_message.Message):
    __slots__ = ("header", "transactions")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    transactions: _containers.RepeatedCompositeFieldContainer[LargeTransaction]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., transactions: _Optional[_Iterable[_Union[LargeTransaction, _Mapping]]] = ...) -> None: ...
