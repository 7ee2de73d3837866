#!/bin/sh
# See to it that etcd's server, and h2load, a client in C, are there to compare with. Installs Debian's packages where
# one is missing and that is possible, and otherwise says in one line what is missing: benchmarks then go on without.
set -eu

missing=""
command -v etcd >/dev/null 2>&1 || missing="etcd-server"
command -v h2load >/dev/null 2>&1 || missing="$missing nghttp2-client"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing what Cortado is compared with: $missing" >&2
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing; } >&2 || true
    command -v etcd >/dev/null 2>&1 && command -v h2load >/dev/null 2>&1 && exit 0
fi
echo "Not installed, so not compared with: $missing (on Debian: apt-get install $missing)" >&2
exit 1
