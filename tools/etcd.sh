#!/bin/sh
# See to it that what Cortado is compared with is there: etcd's server, Go and the source of etcd's client for it, and
# h2load, a client in C. Installs Debian's packages where one is missing and that is possible, and otherwise says in one
# line what is missing: benchmarks then go on without.
set -eu

missing() {
    command -v etcd >/dev/null 2>&1 || printf ' etcd-server'
    command -v go >/dev/null 2>&1 || printf ' golang-go'
    [ -d /usr/share/gocode/src/go.etcd.io/etcd/clientv3 ] || printf ' golang-etcd-server-dev'
    command -v h2load >/dev/null 2>&1 || printf ' nghttp2-client'
}

packages=$(missing)
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing what Cortado is compared with:$packages" >&2
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages; } >&2 || true
    packages=$(missing)
    [ -n "$packages" ] || exit 0
fi
echo "Not installed, so not compared with:$packages (on Debian: apt-get install$packages)" >&2
exit 1
