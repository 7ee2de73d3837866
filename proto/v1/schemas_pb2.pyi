from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompatibilityMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPATIBILITY_MODE_UNSPECIFIED: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_NONE: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_BACKWARD: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_BACKWARD_TRANSITIVE: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_FORWARD: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_FORWARD_TRANSITIVE: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_FULL: _ClassVar[CompatibilityMode]
    COMPATIBILITY_MODE_FULL_TRANSITIVE: _ClassVar[CompatibilityMode]
COMPATIBILITY_MODE_UNSPECIFIED: CompatibilityMode
COMPATIBILITY_MODE_NONE: CompatibilityMode
COMPATIBILITY_MODE_BACKWARD: CompatibilityMode
COMPATIBILITY_MODE_BACKWARD_TRANSITIVE: CompatibilityMode
COMPATIBILITY_MODE_FORWARD: CompatibilityMode
COMPATIBILITY_MODE_FORWARD_TRANSITIVE: CompatibilityMode
COMPATIBILITY_MODE_FULL: CompatibilityMode
COMPATIBILITY_MODE_FULL_TRANSITIVE: CompatibilityMode

class SchemaVersion(_message.Message):
    __slots__ = ("schema_id", "subject", "version", "schema", "fingerprint", "deleted")
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    schema_id: int
    subject: str
    version: int
    schema: str
    fingerprint: str
    deleted: bool
    def __init__(self, schema_id: _Optional[int] = ..., subject: _Optional[str] = ..., version: _Optional[int] = ..., schema: _Optional[str] = ..., fingerprint: _Optional[str] = ..., deleted: bool = ...) -> None: ...

class Incompatibility(_message.Message):
    __slots__ = ("version", "path", "kind", "message")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    version: int
    path: str
    kind: str
    message: str
    def __init__(self, version: _Optional[int] = ..., path: _Optional[str] = ..., kind: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class RegisterSchemaRequest(_message.Message):
    __slots__ = ("subject", "schema", "request_id")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    subject: str
    schema: str
    request_id: bytes
    def __init__(self, subject: _Optional[str] = ..., schema: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class RegisterSchemaResponse(_message.Message):
    __slots__ = ("header", "version", "created")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    version: SchemaVersion
    created: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., version: _Optional[_Union[SchemaVersion, _Mapping]] = ..., created: bool = ...) -> None: ...

class GetSchemaRequest(_message.Message):
    __slots__ = ("schema_id", "subject", "version")
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    schema_id: int
    subject: str
    version: int
    def __init__(self, schema_id: _Optional[int] = ..., subject: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class GetSchemaResponse(_message.Message):
    __slots__ = ("header", "version")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    version: SchemaVersion
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., version: _Optional[_Union[SchemaVersion, _Mapping]] = ...) -> None: ...

class ListSubjectsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "include_deleted")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DELETED_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: bytes
    include_deleted: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., include_deleted: bool = ...) -> None: ...

class SubjectSummary(_message.Message):
    __slots__ = ("subject", "versions", "mode", "tables")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    subject: str
    versions: int
    mode: CompatibilityMode
    tables: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, subject: _Optional[str] = ..., versions: _Optional[int] = ..., mode: _Optional[_Union[CompatibilityMode, str]] = ..., tables: _Optional[_Iterable[str]] = ...) -> None: ...

class ListSubjectsResponse(_message.Message):
    __slots__ = ("header", "subjects", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    subjects: _containers.RepeatedCompositeFieldContainer[SubjectSummary]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., subjects: _Optional[_Iterable[_Union[SubjectSummary, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class ListVersionsRequest(_message.Message):
    __slots__ = ("subject", "page_size", "page_token", "include_deleted", "schema_id", "omit_schemas")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DELETED_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    OMIT_SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    subject: str
    page_size: int
    page_token: bytes
    include_deleted: bool
    schema_id: int
    omit_schemas: bool
    def __init__(self, subject: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., include_deleted: bool = ..., schema_id: _Optional[int] = ..., omit_schemas: bool = ...) -> None: ...

class ListVersionsResponse(_message.Message):
    __slots__ = ("header", "versions", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    versions: _containers.RepeatedCompositeFieldContainer[SchemaVersion]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., versions: _Optional[_Iterable[_Union[SchemaVersion, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class CheckSchemaRequest(_message.Message):
    __slots__ = ("subject", "schema", "mode", "version")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    subject: str
    schema: str
    mode: CompatibilityMode
    version: int
    def __init__(self, subject: _Optional[str] = ..., schema: _Optional[str] = ..., mode: _Optional[_Union[CompatibilityMode, str]] = ..., version: _Optional[int] = ...) -> None: ...

class CheckSchemaResponse(_message.Message):
    __slots__ = ("header", "compatible", "incompatibilities", "mode", "registered")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    COMPATIBLE_FIELD_NUMBER: _ClassVar[int]
    INCOMPATIBILITIES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    compatible: bool
    incompatibilities: _containers.RepeatedCompositeFieldContainer[Incompatibility]
    mode: CompatibilityMode
    registered: SchemaVersion
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., compatible: bool = ..., incompatibilities: _Optional[_Iterable[_Union[Incompatibility, _Mapping]]] = ..., mode: _Optional[_Union[CompatibilityMode, str]] = ..., registered: _Optional[_Union[SchemaVersion, _Mapping]] = ...) -> None: ...

class GetCompatibilityRequest(_message.Message):
    __slots__ = ("subject",)
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    subject: str
    def __init__(self, subject: _Optional[str] = ...) -> None: ...

class GetCompatibilityResponse(_message.Message):
    __slots__ = ("header", "mode", "own")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    mode: CompatibilityMode
    own: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., mode: _Optional[_Union[CompatibilityMode, str]] = ..., own: bool = ...) -> None: ...

class SetCompatibilityRequest(_message.Message):
    __slots__ = ("subject", "mode", "request_id")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    subject: str
    mode: CompatibilityMode
    request_id: bytes
    def __init__(self, subject: _Optional[str] = ..., mode: _Optional[_Union[CompatibilityMode, str]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class SetCompatibilityResponse(_message.Message):
    __slots__ = ("header", "mode")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    mode: CompatibilityMode
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., mode: _Optional[_Union[CompatibilityMode, str]] = ...) -> None: ...

class DeleteSchemaRequest(_message.Message):
    __slots__ = ("subject", "version", "permanent", "request_id")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    subject: str
    version: int
    permanent: bool
    request_id: bytes
    def __init__(self, subject: _Optional[str] = ..., version: _Optional[int] = ..., permanent: bool = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DeleteSchemaResponse(_message.Message):
    __slots__ = ("header", "versions")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    versions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., versions: _Optional[_Iterable[int]] = ...) -> None: ...
