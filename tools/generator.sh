#!/bin/sh
# Make a virtual environment with the stub generator, on a Python that has its wheels (3.11 or 3.12).
set -eu
cd "$(dirname "$0")/.."
folder=$1
for candidate in ${PROTO_PYTHON:-} .venv/bin/python python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' >/dev/null 2>&1; then
        "$candidate" -m venv "$folder"
        exec "$folder/bin/python" -m pip --disable-pip-version-check install --quiet --require-hashes \
            -r requirements-proto.lock
    fi
done
echo "The stub generator needs Python 3.11 or 3.12 (name one with PROTO_PYTHON)." >&2
exit 1
