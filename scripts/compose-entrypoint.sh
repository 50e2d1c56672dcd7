#!/bin/sh
# The entrypoint of the service's image: an API key for those who have none yet, which is
# then kept on the volume, and the service.
set -eu

keys=$NOTEBOX_API_KEYS_FILE
if [ ! -s "$keys" ]; then
  umask 077
  key=$(od -An -v -N 24 -t x1 /dev/urandom | tr -d ' \n')
  # Renamed when complete: an interrupted first start leaves no empty list of keys.
  echo "$key" >"$keys.new"
  mv "$keys.new" "$keys"
  echo "notebox: the API key, made now and shown this once: $key" >&2
  echo "notebox: it is kept in $keys, one key a line" >&2
fi
exec notebox "$@"
