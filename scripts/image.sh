#!/usr/bin/env bash
# image.sh [ENVIRONMENT]: makes sure that the daemon has the sandbox image of that
# environment (jupyter), and prints its reference. Builds it where it is missing, and with
# it whatever that needs: a Docker daemon, the base image.
#
# NOTEBOX_IMAGE_REF names the image otherwise than by its contents' hash; it is then
# built each time, from the cache where nothing has changed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly environment=${1:-jupyter}
readonly folder=$root/environments
[ -f "$folder/$environment/Dockerfile" ] || die "there is no environment $environment"

# The program knows which image is its own: the hash is over files embedded in it.
ref=${NOTEBOX_IMAGE_REF:-}
if [ -z "$ref" ]; then
  ref=$(cd "$root" && go run ./cmd/notebox image "$environment")
  if has_image "$ref"; then
    say "$ref is there"
    echo "$ref"
    exit 0
  fi
fi

"$root/scripts/docker.sh"
lock image
if [ -n "${NOTEBOX_IMAGE_REF:-}" ] || ! has_image "$ref"; then
  "$root/scripts/base-image.sh"
  say "building $ref (the first time takes some minutes)"
  build_image "$folder/$environment/Dockerfile" "$folder" "$ref"
fi
say "$ref has $(docker image inspect --format '{{.Size}}' "$ref" | awk '{ printf "%.2f GB", $1 / 1e9 }')"
echo "$ref"
