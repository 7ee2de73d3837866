from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NewToken(_message.Message):
    __slots__ = ("token_id", "digest", "lifetime_ms")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_MS_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    digest: bytes
    lifetime_ms: int
    def __init__(self, token_id: _Optional[str] = ..., digest: _Optional[bytes] = ..., lifetime_ms: _Optional[int] = ...) -> None: ...

class TokenState(_message.Message):
    __slots__ = ("token_id", "created_ms", "expires_ms")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    created_ms: int
    expires_ms: int
    def __init__(self, token_id: _Optional[str] = ..., created_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class RoleGrant(_message.Message):
    __slots__ = ("role", "resource")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    role: str
    resource: str
    def __init__(self, role: _Optional[str] = ..., resource: _Optional[str] = ...) -> None: ...

class Principal(_message.Message):
    __slots__ = ("name", "kind", "tokens", "grants")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    tokens: _containers.RepeatedCompositeFieldContainer[TokenState]
    grants: _containers.RepeatedCompositeFieldContainer[RoleGrant]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., tokens: _Optional[_Iterable[_Union[TokenState, _Mapping]]] = ..., grants: _Optional[_Iterable[_Union[RoleGrant, _Mapping]]] = ...) -> None: ...

class EnableAuthRequest(_message.Message):
    __slots__ = ("principal", "kind", "token", "request_id")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    principal: str
    kind: str
    token: NewToken
    request_id: bytes
    def __init__(self, principal: _Optional[str] = ..., kind: _Optional[str] = ..., token: _Optional[_Union[NewToken, _Mapping]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DisableAuthRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    def __init__(self, request_id: _Optional[bytes] = ...) -> None: ...

class AuthStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AuthStatusResponse(_message.Message):
    __slots__ = ("header", "enabled", "principals", "admins")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    ADMINS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    enabled: bool
    principals: int
    admins: int
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., enabled: bool = ..., principals: _Optional[int] = ..., admins: _Optional[int] = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ("header", "enabled", "principal")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    enabled: bool
    principal: Principal
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., enabled: bool = ..., principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...

class ListPrincipalsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: bytes
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ...) -> None: ...

class ListPrincipalsResponse(_message.Message):
    __slots__ = ("header", "principals", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    principals: _containers.RepeatedCompositeFieldContainer[Principal]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., principals: _Optional[_Iterable[_Union[Principal, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class CreatePrincipalRequest(_message.Message):
    __slots__ = ("principal", "kind", "token", "request_id")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    principal: str
    kind: str
    token: NewToken
    request_id: bytes
    def __init__(self, principal: _Optional[str] = ..., kind: _Optional[str] = ..., token: _Optional[_Union[NewToken, _Mapping]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class RotateTokenRequest(_message.Message):
    __slots__ = ("principal", "token", "overlap_ms", "request_id")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    principal: str
    token: NewToken
    overlap_ms: int
    request_id: bytes
    def __init__(self, principal: _Optional[str] = ..., token: _Optional[_Union[NewToken, _Mapping]] = ..., overlap_ms: _Optional[int] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class RevokePrincipalRequest(_message.Message):
    __slots__ = ("principal", "token_id", "request_id")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    principal: str
    token_id: str
    request_id: bytes
    def __init__(self, principal: _Optional[str] = ..., token_id: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class GrantRequest(_message.Message):
    __slots__ = ("principal", "role", "resource", "request_id")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    principal: str
    role: str
    resource: str
    request_id: bytes
    def __init__(self, principal: _Optional[str] = ..., role: _Optional[str] = ..., resource: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class PrincipalResponse(_message.Message):
    __slots__ = ("header", "principal")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    principal: Principal
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...
