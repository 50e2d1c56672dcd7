#!/usr/bin/env bash
# Starts the service on a free port, sends it the analysis of examples/analysis, shows what
# comes back, and stops the service again.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

readonly start_seconds=60
folder=$(mktemp -d "${TMPDIR:-/tmp}/notebox-demo.XXXXXX")
log=$folder/log
# What a .env file or the caller's variables set is for a service of theirs.
for name in $(compgen -e NOTEBOX_); do unset "$name"; done
(cd "$folder" && exec "$root/bin/notebox" serve --listen 127.0.0.1:0 --state-dir "$folder/state" --storage "file://$folder/files" 2>"$log") &
service=$!
stop() {
  kill "$service" 2>/dev/null || true
  wait "$service" || true
  rm -rf -- "$folder"
}
trap stop EXIT

until url=$(sed -n 's/.*msg="notebox serves" url=\([^ ]*\).*/\1/p' "$log") && [ -n "$url" ]; do
  if ! kill -0 "$service" 2>/dev/null || [ "$SECONDS" -ge "$start_seconds" ]; then
    cat "$log" >&2
    die "the service did not start"
  fi
  sleep 0.1
done
say "the service answers at $url; sending it examples/analysis"
go run ./examples/analysis -url "$url"
say "done; make serve keeps a service running"
