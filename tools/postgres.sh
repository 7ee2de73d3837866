#!/bin/sh
# See to it that what Cortado is compared with through Spark is there: PostgreSQL and its JDBC driver. Installs Debian's
# packages where one is missing and that is possible, and otherwise says in one line what is missing: the benchmark then
# goes on without.
set -eu

missing() {
    { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 || printf ' postgresql'
    [ -e "${POSTGRESQL_JDBC_JAR:-/usr/share/java/postgresql.jar}" ] || printf ' libpostgresql-jdbc-java'
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
