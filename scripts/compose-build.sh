#!/usr/bin/env bash
# Builds the image of the service, that of Python's sandboxes if it is missing, and that of profile
# azurite if PROFILES has it, with what this host needs to reach the world, which compose cannot pass on.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$root/scripts/docker.sh"
"$root/scripts/base-image.sh"
if [[ " ${PROFILES:-} " == *" azurite "* && -z ${AZURITE_IMAGE:-} ]] && ! grep -qs '^AZURITE_IMAGE=' "$root/.env"; then
  "$root/scripts/compose-packages.sh" azurite
fi
lock compose-build
"$root/scripts/image.sh" >/dev/null
build_image "$root/Dockerfile" "$root" notebox/service:compose
say "built; start with: scripts/compose.sh up"
