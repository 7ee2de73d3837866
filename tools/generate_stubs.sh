#!/bin/sh
# Generate the stubs of the public API and of the internal formats below the folder named.
set -eu
cd "$(dirname "$0")/.."
protoc=".venv-proto/bin/python -m grpc_tools.protoc -Isrc"
out=$1
# Only files with a service get a _pb2_grpc module.
services=$(grep -l '^service ' src/cortado/proto/v1/*.proto src/cortado/proto/internal/*.proto)
$protoc --python_out="$out" --pyi_out="$out" src/cortado/proto/v1/*.proto src/cortado/proto/internal/*.proto
$protoc --grpc_python_out="$out" $services
