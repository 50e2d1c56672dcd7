#!/usr/bin/env bash
# compose.sh ARGUMENTS…: Docker Compose as this machine has it, installed where it has none.
# PROFILES="s3 monitoring" chooses profiles of compose.yaml, with what deploy/compose has for each.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

# load FILE: its variables, but for those that the shell or .env has.
load() {
  local line name
  while IFS= read -r line; do
    name=${line%%=*}
    [[ $line == *=* && $name =~ ^[A-Z_0-9]+$ ]] || continue
    [ -n "${!name:-}" ] || grep -qs "^$name=" .env || export "$name=${line#*=}"
  done <"$1"
}
for profile in ${PROFILES:-}; do
  if [ -f "deploy/compose/$profile.env" ]; then load "deploy/compose/$profile.env"; fi
  COMPOSE_PROFILES=${COMPOSE_PROFILES:+$COMPOSE_PROFILES,}$profile
  export COMPOSE_PROFILES
done

# The socket's group in the machine of the daemon; Docker Desktop has 0 there.
if [ -z "${DOCKER_GID:-}" ] && ! grep -qs '^DOCKER_GID=' .env; then
  DOCKER_GID=$(stat -Lc %g /var/run/docker.sock 2>/dev/null || echo 0)
  export DOCKER_GID
fi

if docker compose version >/dev/null 2>&1; then
  exec docker compose "$@"
fi
if ! command -v docker-compose >/dev/null; then
  can_install || die "install Docker Compose (https://docs.docker.com/compose/install/)"
  install docker-compose
fi
exec docker-compose "$@"
