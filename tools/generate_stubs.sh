#!/bin/sh
# Generate the stubs of the public API and of the internal formats below the folder named, and the API's reference in
# docs/api, or in the second folder.
set -eu
cd "$(dirname "$0")/.."
protoc=".venv-proto/bin/python -m grpc_tools.protoc -Isrc"
out=$1
reference=${2:-docs/api}
# Only files with a service get a _pb2_grpc module.
services=$(grep -l '^service ' src/cortado/proto/v1/*.proto src/cortado/proto/internal/*.proto)
$protoc --python_out="$out" --pyi_out="$out" src/cortado/proto/v1/*.proto src/cortado/proto/internal/*.proto
$protoc --grpc_python_out="$out" $services

descriptors=$(mktemp)
trap 'rm -f "$descriptors"' EXIT
$protoc --include_source_info --descriptor_set_out="$descriptors" src/cortado/proto/v1/*.proto
.venv-proto/bin/python tools/api_reference.py "$descriptors" "$reference"
