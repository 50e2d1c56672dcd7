#!/bin/sh
# start.sh CONNECTION_FILE: the kernel, with the compiled standard library of the image in
# a build cache that it can write to: links, as a copy would cost memory. A session's later
# kernels find the cache of the first.
set -eu
mkdir -p "$HOME" "${GOPATH%%:*}" "$TMPDIR"
if [ ! -d "$GOCACHE" ]; then
  rm -rf "$GOCACHE.new" # of a start that did not come so far
  cp -rs /opt/go/cache "$GOCACHE.new"
  mv -T "$GOCACHE.new" "$GOCACHE"
fi
exec /opt/go/bin/gonb --kernel "$1" --raw_error
