#!/usr/bin/env bash
# Builds the image of the service, and that of Python's sandboxes where it is missing, with
# what this host needs to reach the world, which compose cannot pass on.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$root/scripts/docker.sh"
"$root/scripts/base-image.sh"
lock compose-build
"$root/scripts/image.sh" >/dev/null
build_image "$root/Dockerfile" "$root" notebox/service:compose
say "built; start with: scripts/compose.sh up"
