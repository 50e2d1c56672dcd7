#!/usr/bin/env bash
# Installs the servers that the tests of storage and of limits start, once for each list of
# versions: Azurite, an S3 server, a server of Google Cloud Storage, and Valkey or Redis of the
# distribution. All else is in .stores.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly versitygw=github.com/versity/versitygw/cmd/versitygw@v1.8.0
readonly fake_gcs=github.com/fsouza/fake-gcs-server@v1.56.1
readonly list=$root/scripts/stores # package.json and its lock: Azurite
readonly stores=$root/.stores

wanted() { printf '%s\n' "$versitygw" "$fake_gcs"; cat "$list/package-lock.json"; }
is_there() { [ -f "$stores/installed" ] && wanted | cmp -s - "$stores/installed"; }

# redis_server prints the program of a Valkey or Redis that is installed. Debian has it in the
# package of the tools too, under the name of another that it also is: the package of the server
# would start one on this machine.
redis_server() { command -v valkey-server || command -v redis-server || command -v valkey-check-rdb || command -v redis-check-rdb; }
has_redis() { [ -x "$stores/bin/redis-server" ]; }

has_node() { command -v node >/dev/null && command -v npm >/dev/null; }

if is_there && has_redis && command -v node >/dev/null; then
  exit 0
fi
lock stores
if is_there && has_redis && command -v node >/dev/null; then # installed while we waited
  exit 0
fi
command -v go >/dev/null || die "go is missing: install it (https://go.dev/doc/install)"
if ! has_node; then
  if ! is_debian || ! can_be_root; then die "node and npm are missing: install Node.js 18 or newer"; fi
  install nodejs npm
fi
if ! redis_server >/dev/null; then
  if ! can_install; then die "valkey-server and redis-server are missing: install either"; fi
  install redis-tools
fi
mkdir -p "$stores/bin" "$stores/azurite"
ln -sf "$(redis_server)" "$stores/bin/redis-server"
if is_there && command -v node >/dev/null; then # from before this script installed it
  exit 0
fi
rm -f "$stores/installed"

say "installing Azurite"
cp "$list/package.json" "$list/package-lock.json" "$stores/azurite/"
# Node knows the certificates of its own alone, where it is not told of the host's.
if [ -z "${NODE_EXTRA_CA_CERTS:-}" ]; then
  NODE_EXTRA_CA_CERTS=$(ca_bundle)
  export NODE_EXTRA_CA_CERTS
fi
# No scripts of packages: none is needed, and each would run as this user.
(cd "$stores/azurite" && try npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >&2 9>&-)
for package in "$versitygw" "$fake_gcs"; do
  say "building $package"
  (cd "$stores" && GOBIN=$stores/bin CGO_ENABLED=0 try go install "$package" 9>&-)
done
wanted >"$stores/installed"
