"""Kafka's own clients of a schema registry, unchanged, against a gateway process before a server process.

The Python client is Confluent's. The requests of Kafka Connect's Avro converter are written out by hand, in the form of
its REST client: the paths, the order of the parameters, the headers.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.schema_registry_client import Schema
from confluent_kafka.serialization import MessageField, SerializationContext

from cortado.store.client import Client
from support.gateway_process import gateway_process
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

V1: Final = json.dumps(
    {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}, {"name": "to", "type": "string"}]}
)
V2: Final = json.dumps(
    {
        "type": "record",
        "name": "Flight",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "destination", "type": "string", "aliases": ["to"]},
            {"name": "delay", "type": ["null", "int"], "default": None},
        ],
    }
)
BAD: Final = V1.replace('"long"', '"string"')


@pytest.fixture(scope="module")
def address(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with gateway_process(server.endpoint, tmp_path_factory.mktemp("gateway")) as running:
        yield f"{running.host}:{running.port}"


@pytest.fixture
def kafka(address: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": f"http://{address}"}) as opened:
        yield opened


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def error_of(error: pytest.ExceptionInfo[SchemaRegistryError]) -> tuple[int, int]:
    return error.value.http_status_code, error.value.error_code


def test_what_the_serializer_of_one_version_wrote_the_reader_of_the_next_reads(kafka: SchemaRegistryClient) -> None:
    write, write_next = AvroSerializer(kafka, V1), AvroSerializer(kafka, V2)
    old = write({"id": 7, "to": "EWR"}, value_of("flights"))
    new = write_next({"id": 8, "destination": "JFK", "delay": 3}, value_of("flights"))
    assert old is not None and new is not None
    ids = [each.schema_id for each in map(kafka.get_latest_version, ["flights-value"])]
    assert (old[0], int.from_bytes(new[1:5], "big")) == (0, ids[0]), "a message begins with the id of its schema"
    read_next, as_written = AvroDeserializer(kafka, V2), AvroDeserializer(kafka)
    assert read_next(old, value_of("flights")) == {"id": 7, "destination": "EWR", "delay": None}
    assert read_next(new, value_of("flights")) == {"id": 8, "destination": "JFK", "delay": 3}
    assert as_written(old, value_of("flights")) == {"id": 7, "to": "EWR"}


def test_keys_of_any_type_are_written_and_read(kafka: SchemaRegistryClient) -> None:
    context = SerializationContext("flights", MessageField.KEY)
    written = AvroSerializer(kafka, '"string"')("N14228", context)
    assert AvroDeserializer(kafka)(written, context) == "N14228"
    assert kafka.get_latest_version("flights-key").schema.schema_str == '{"type":"string"}'


def test_a_schema_that_does_not_fit_is_refused_with_the_reason(kafka: SchemaRegistryClient) -> None:
    kafka.register_schema("refused-value", Schema(V1, "AVRO"))
    with pytest.raises(SchemaRegistryError, match=r"Flight.id: long cannot be read as string") as error:
        kafka.register_schema("refused-value", Schema(BAD, "AVRO"))
    assert error_of(error) == (409, 409)
    assert kafka.test_compatibility("refused-value", Schema(V2, "AVRO"))
    assert not kafka.test_compatibility("refused-value", Schema(BAD, "AVRO"), version=1)
    assert not kafka.test_compatibility_all_versions("refused-value", Schema(BAD, "AVRO"))


def test_a_serializer_that_may_not_register_looks_its_schema_up(kafka: SchemaRegistryClient) -> None:
    settings = {"auto.register.schemas": False}
    with pytest.raises(SchemaRegistryError) as error:
        AvroSerializer(kafka, V1, conf=settings)({"id": 1, "to": "a"}, value_of("lookups"))
    assert error_of(error) == (404, 40401)
    kafka.register_schema("lookups-value", Schema(V1, "AVRO"))
    kafka.clear_caches()
    assert AvroSerializer(kafka, V1, conf=settings)({"id": 1, "to": "a"}, value_of("lookups"))
    with pytest.raises(SchemaRegistryError) as error:
        AvroSerializer(kafka, V2, conf=settings)({"id": 1, "destination": "a", "delay": None}, value_of("lookups"))
    assert error_of(error) == (404, 40403)
    latest = AvroSerializer(kafka, V1, conf={**settings, "use.latest.version": True})
    assert latest({"id": 1, "to": "a"}, value_of("lookups"))


def test_the_client_asks_once_for_what_it_caches(kafka: SchemaRegistryClient, server: ServerProcess) -> None:
    schema_id = kafka.register_schema("cached-value", Schema(V1, "AVRO"))
    with Client(server.endpoint) as client:
        client.schemas.delete("cached-value")
    assert kafka.register_schema("cached-value", Schema(V1, "AVRO")) == schema_id, "from its cache"
    with pytest.raises(SchemaRegistryError):
        kafka.get_versions("cached-value")
    kafka.clear_caches()
    assert kafka.get_schema(schema_id).schema_str == V1, "an id names its text, whatever became of the subject"
    assert kafka.register_schema("cached-value", Schema(V1, "AVRO")) == schema_id
    assert kafka.get_versions("cached-value") == [2]


def test_every_call_of_the_client_is_answered(kafka: SchemaRegistryClient) -> None:
    first = kafka.register_schema("all-value", Schema(V1, "AVRO"), normalize_schemas=True)
    second = kafka.register_schema_full_response("all-value", Schema(V2, "AVRO")).schema_id
    assert kafka.get_schema_types() == ["AVRO"]
    assert "all-value" in kafka.get_subjects_by_schema_id(first)
    assert ("all-value", 2) in [(each.subject, each.version) for each in kafka.get_schema_versions(second)]
    assert kafka.lookup_schema("all-value", Schema(V1, "AVRO")).version == 1
    assert "all-value" in kafka.get_subjects(subject_prefix="all")
    assert kafka.get_version("all-value", 1).schema_id == first
    assert kafka.get_latest_version("all-value").version == 2
    assert kafka.get_referenced_by("all-value", 1) == []
    assert kafka.get_versions("all-value") == [1, 2]
    assert kafka.get_compatibility() == "BACKWARD_TRANSITIVE"
    assert kafka.set_compatibility("all-value", "full") == {"compatibility": "FULL"}
    assert kafka.get_compatibility("all-value") == "FULL"
    assert kafka.get_config("all-value").compatibility_level == "FULL"
    assert kafka.delete_config("all-value").compatibility_level == "FULL"
    assert (kafka.get_global_mode(), kafka.get_mode("all-value")) == ("READWRITE", "READWRITE")
    assert kafka.update_mode("all-value", "READWRITE") == "READWRITE"
    with pytest.raises(SchemaRegistryError) as error:
        kafka.update_global_mode("READONLY")
    assert error_of(error) == (422, 42205)
    assert kafka.get_contexts() == ["."]
    assert kafka.delete_version("all-value", 1) == 1
    assert kafka.delete_version("all-value", 1, permanent=True) == 1
    assert kafka.delete_subject("all-value") == [2]
    assert kafka.delete_subject("all-value", permanent=True) == [2]
    with pytest.raises(SchemaRegistryError) as error:
        kafka.get_associations_by_resource_name("flights", "-")
    assert error_of(error) == (404, 404)


def test_a_subject_of_a_table_is_one_of_a_topic_too(kafka: SchemaRegistryClient, client: Client, database: str) -> None:
    subject = f"{database}.flights"
    schema_id = kafka.register_schema(subject, Schema(V1, "AVRO"))
    client.create_table(subject, key=["id"])
    client.table(subject).put({"id": 1, "to": "EWR"})
    assert kafka.register_schema(subject, Schema(V2, "AVRO")) != schema_id
    found = client.table(subject, schema_version=2).get(1)
    assert found is not None and found.value == {"id": 1, "destination": "EWR", "delay": None}
    with pytest.raises(SchemaRegistryError, match=f"table {subject} follows it") as error:
        kafka.delete_subject(subject)
    assert error_of(error) == (422, 42206)


# --- Kafka Connect's converter, by hand --------------------------------------------------------------------------

JAVA: Final = {
    "Content-Type": "application/vnd.schemaregistry.v1+json",
    "Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
    "User-Agent": "Java/17.0.9",
    "Connection": "keep-alive",
}
CONNECT: Final = (
    '{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro",'
    '"fields":[{"name":"at","type":{"type":"long","connect.version":1,'
    '"connect.name":"org.apache.kafka.connect.data.Timestamp","logicalType":"timestamp-millis"}}]}'
)


def test_what_connects_converter_sends_is_answered_as_it_waits_for(address: str) -> None:
    connection = http.client.HTTPConnection(address, timeout=30)

    def send(method: str, path: str, body: str | None = None) -> tuple[int, Any]:
        connection.request(method, path, body, JAVA)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    status, told = send(
        "POST",
        "/subjects/connect-value/versions?normalize=false",
        json.dumps({"schema": CONNECT, "schemaType": "AVRO"}),
    )
    assert (status, list(told)) == (200, ["id"])
    schema_id = told["id"]
    assert send("GET", f"/schemas/ids/{schema_id}?fetchMaxId=false&subject=connect-value") == (200, {"schema": CONNECT})
    found = {"subject": "connect-value", "version": 1, "id": schema_id, "schema": CONNECT}
    lookup = "/subjects/connect-value?normalize=false&deleted=true"
    assert send("POST", lookup, json.dumps({"schema": CONNECT})) == (200, found)
    assert send("GET", "/subjects/connect-value/versions/latest") == (200, found)
    assert send("GET", "/subjects/connect-value/versions/1?deleted=true") == (200, found)
    verdict = {"is_compatible": True, "messages": []}
    check = "/compatibility/subjects/connect-value/versions/?normalize=false&verbose=true"
    assert send("POST", check, json.dumps({"schema": CONNECT})) == (200, verdict)
    assert send("GET", "/mode/connect-value?defaultToGlobal=true") == (200, {"mode": "READWRITE"})
    level = {"compatibilityLevel": "BACKWARD_TRANSITIVE"}
    assert send("GET", "/config/connect-value?defaultToGlobal=true") == (200, level)
    status, told = send("GET", "/schemas/ids/2147483647?fetchMaxId=false&subject=connect-value")
    assert (status, told["error_code"]) == (404, 40403)
    connection.close()
