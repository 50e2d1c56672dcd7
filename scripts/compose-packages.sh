#!/usr/bin/env bash
# compose-packages.sh [PROFILE…]: builds the servers of compose.yaml's profiles from packages, for
# machines that reach no registry of images. Grafana is in no package. Then:
#
#   COMPOSE_FILE=compose.yaml:scripts/compose/packages.yaml PROFILES=s3 scripts/compose.sh up -d
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$root/scripts/docker.sh"
"$root/scripts/base-image.sh"
"$root/scripts/stores.sh"
lock compose-build
[ $# -gt 0 ] || set -- s3 monitoring caddy azurite
for target in "$@"; do
  build_image "$root/scripts/compose/Dockerfile" "$root/.stores/" "notebox/profile:$target" --target "$target"
done
