#!/usr/bin/env bash
# Builds the two images that compose.yaml names, with what this host needs to reach the
# world, which compose cannot pass on; after it, compose has nothing left to build.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$root/scripts/docker.sh"
"$root/scripts/base-image.sh"
lock compose-build
build_image "$root/environments/jupyter/Dockerfile" "$root/environments" notebox/jupyter:compose
build_image "$root/Dockerfile" "$root" notebox/service:compose
say "built; start with: docker-compose up (or docker compose up)"
