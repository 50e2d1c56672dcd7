#!/usr/bin/env bash
# compose.sh ARGUMENTS…: Docker Compose as this machine has it, installed where it has none.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

if docker compose version >/dev/null 2>&1; then
  exec docker compose "$@"
fi
if ! command -v docker-compose >/dev/null; then
  if ! is_debian || ! can_be_root; then die "install Docker Compose (https://docs.docker.com/compose/install/)"; fi
  install docker-compose
fi
exec docker-compose "$@"
