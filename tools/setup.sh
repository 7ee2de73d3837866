#!/bin/sh
# Make .venv: a virtual environment with all that requirements.lock names, by hash, and Cortado itself, editable.
# Needs Python 3.11 or newer. Where Debian's Python comes without venv, its package is installed if that is possible.
set -eu
cd "$(dirname "$0")/.."

stamp=.venv/.ready
wanted=$(cat requirements.lock pyproject.toml tools/setup.sh | cksum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && [ -x .venv/bin/python ]; then
    exit 0
fi

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2])' >/dev/null 2>&1; }
python=
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if fits "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "Cortado needs Python 3.11 or newer: install it, or name it with PYTHON=/path/to/python3." >&2
    exit 1
fi

echo "Setting up .venv with $("$python" --version) (once; about a minute)"
rm -rf .venv
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null
    else
        echo "This Python has no venv: install it (on Debian: apt-get install $package)." >&2
        exit 1
    fi
fi
"$python" -m venv .venv
pip=".venv/bin/python -m pip --disable-pip-version-check"
$pip install --quiet --require-hashes -r requirements.lock
$pip install --quiet --no-deps --no-build-isolation --editable .
echo "Compiling the scan kernel (some fifteen seconds)"
.venv/bin/python -m cortado.store.mvcc.kernel.compiling || echo "Python reads what it would have read." >&2
echo "$wanted" > "$stamp"
