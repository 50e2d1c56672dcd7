#!/usr/bin/env bash
# image.sh [--all | ENVIRONMENT]: makes sure that the daemon has the sandbox image of that
# environment (jupyter), or of all, and prints its reference. `notebox image build` builds it
# where it is missing; this brings what that needs in a checkout: a Docker daemon, Debian's
# image also where no registry answers, and the supervisor of cells of this tree.
#
# NOTEBOX_ENVIRONMENTS_DIR is a folder with environments of your own, which --all includes.
# NOTEBOX_IMAGE_REF names the image otherwise than by its contents' hash; it is then
# built each time, from the cache where nothing has changed. It is for one environment.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly own=${NOTEBOX_ENVIRONMENTS_DIR:+$(realpath "$NOTEBOX_ENVIRONMENTS_DIR")}
readonly tag=${NOTEBOX_IMAGE_REF:-}

# The program knows which image is its own: the hash is over files embedded in it.
reference() { (cd "$root" && go run ./scripts/imageref ${own:+-environments-dir "$own"} "$@"); }

names=("${1:-jupyter}")
if [ "${1:-}" = --all ]; then
  [ -z "$tag" ] || die "NOTEBOX_IMAGE_REF names one image, and --all builds one for each language: name the language instead"
  listed=$(reference -list)
  names=()
  for name in $listed; do names+=("$name"); done
fi

missing=()
for name in "${names[@]}"; do
  ref=$(reference "$name")
  if [ -n "$tag" ]; then
    missing+=("$name")
  elif has_image "$ref"; then
    say "$ref is there"
    echo "$ref"
  else
    missing+=("$name")
  fi
done
[ "${#missing[@]}" -gt 0 ] || exit 0

"$root/scripts/docker.sh"
lock image
has_image "$(reference -base)" || "$root/scripts/base-image.sh"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
arch=$(docker version --format '{{.Server.Arch}}')
cd "$root"
go run ./scripts/supervisor -arch "$arch" -o "$work/supervisor"
go run ./cmd/notebox image build ${own:+-environments-dir "$own"} ${tag:+-tag "$tag"} \
  -supervisor "$work/supervisor" "${missing[@]}" 9>&-
