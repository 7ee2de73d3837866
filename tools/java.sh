#!/bin/sh
# Print a JAVA_HOME that Spark supports: Java 17 or later. Installs Debian's package where there is none and that is
# possible, and otherwise says in one line what to install.
set -eu

# The major version of a Java home, or nothing.
major() {
    [ -x "$1/bin/java" ] || return 0
    "$1/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

find_java() {
    on_path=$(command -v java 2>/dev/null || true)
    if [ -n "$on_path" ]; then
        on_path=$(dirname "$(dirname "$(readlink -f "$on_path" 2>/dev/null || echo "$on_path")")")
    fi
    on_mac=$(/usr/libexec/java_home -v 17+ 2>/dev/null || true)
    for home in ${JAVA_HOME:-} $on_path $on_mac /usr/lib/jvm/*; do
        version=$(major "$home")
        if [ -n "$version" ] && [ "$version" -ge 17 ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

if find_java; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Java for Spark (openjdk-17-jre-headless)" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless; } >&2
    if find_java; then exit 0; fi
fi
echo "Spark needs Java 17 or later: install it (on Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME." >&2
exit 1
