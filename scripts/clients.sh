#!/usr/bin/env bash
# Installs the official clients that tests and examples use, once for each list of
# versions: OpenAI's in Python and TypeScript, the Vercel AI SDK, and MCP's with its
# conformance suite. All of it is in .clients.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly list=$root/scripts/clients # package.json and its lock, requirements.txt
readonly clients=$root/.clients

wanted() { cat "$list/package-lock.json" "$list/requirements.txt"; }
has_node() {
  command -v npm >/dev/null &&
    [ "$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -ge 20 ]
}
is_there() { [ -f "$clients/installed" ] && wanted | cmp -s - "$clients/installed" && has_node; }

if is_there; then
  exit 0
fi
lock clients
if is_there; then # installed while we waited
  exit 0
fi
if ! has_node; then
  if ! is_debian || ! can_be_root; then die "node and npm are missing or old: install Node.js 20 or newer"; fi
  install nodejs npm
  has_node || die "the distribution's Node.js is older than 20: install a newer one"
fi
mkdir -p "$clients/node"
rm -f "$clients/installed"

say "installing the clients in TypeScript"
cp "$list/package.json" "$list/package-lock.json" "$clients/node/"
# Node knows the certificates of its own alone, where it is not told of the host's.
if [ -z "${NODE_EXTRA_CA_CERTS:-}" ]; then
  NODE_EXTRA_CA_CERTS=$(ca_bundle)
  export NODE_EXTRA_CA_CERTS
fi
# No scripts of packages: none is needed, and each would run as this user.
(cd "$clients/node" && try npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >&2 9>&-)

say "installing the client in Python"
if ! python3 -m venv --clear "$clients/python" 2>/dev/null; then
  if ! is_debian || ! can_be_root; then die "python3 cannot make a virtual environment: install its venv module"; fi
  install python3-venv
  python3 -m venv --clear "$clients/python"
fi
try "$clients/python/bin/pip" install -q --disable-pip-version-check --no-deps -r "$list/requirements.txt" 9>&-
wanted >"$clients/installed"
