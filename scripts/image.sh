#!/usr/bin/env bash
# image.sh [--all | ENVIRONMENT]: makes sure that the daemon has the sandbox image of that
# environment (jupyter), or of all, and prints its reference. Builds it where it is missing,
# and with it whatever that needs: a Docker daemon, the base images.
#
# NOTEBOX_ENVIRONMENTS_DIR is a folder with environments of your own, which --all includes.
# NOTEBOX_IMAGE_REF names the image otherwise than by its contents' hash; it is then
# built each time, from the cache where nothing has changed. It is for one environment.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly own=${NOTEBOX_ENVIRONMENTS_DIR:+$(realpath "$NOTEBOX_ENVIRONMENTS_DIR")}

# The program knows which image is its own: the hash is over files embedded in it.
image() { (cd "$root" && go run ./cmd/notebox image ${own:+-environments-dir "$own"} "$@"); }

# folder_of ENVIRONMENT: where its Dockerfile is.
folder_of() {
  local folder
  for folder in "$root/environments/$1" ${own:+"$own/$1"}; do
    if [ -f "$folder/Dockerfile" ]; then
      echo "$folder"
      return
    fi
  done
  die "there is no environment $1 with an image of its own"
}

# build FOLDER REF BASE: a context has what an image's hash is over, and nothing else.
build() (
  context=$(mktemp -d)
  trap 'rm -rf -- "$context"' EXIT
  mkdir -p "$context/base" "$context/$(basename "$1")"
  (cd "$root/environments" && cp --parents -t "$context" harness/*.py harness/harness/*.py harness/harness/*/*.py)
  arch=$(docker version --format '{{.Server.Arch}}')
  (cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS='' go build -trimpath -buildvcs=false -ldflags=-s -o "$context/harness/supervisor" ./environments/supervisor)
  find "$root/environments/base" -maxdepth 1 -type f -exec cp -t "$context/base" {} +
  find "$1" -maxdepth 1 -type f -exec cp -t "$context/$(basename "$1")" {} +
  build_image "$1/Dockerfile" "$context" "$2" ${3:+--build-arg "BASE=$3"}
)

# make_base prints the reference of the image that the others are made from.
make_base() {
  local ref
  ref=$(image -base)
  if ! has_image "$ref"; then
    "$root/scripts/base-image.sh"
    say "building $ref"
    build "$root/environments/base" "$ref" ""
  fi
  has_image "$ref" || die "$ref was not built"
  echo "$ref"
}

# make_image ENVIRONMENT
make_image() {
  local ref=${NOTEBOX_IMAGE_REF:-} base folder
  folder=$(folder_of "$1")
  if [ -z "$ref" ]; then
    ref=$(image "$1")
    if has_image "$ref"; then
      say "$ref is there"
      echo "$ref"
      return
    fi
  fi
  "$root/scripts/docker.sh"
  lock image
  if [ -n "${NOTEBOX_IMAGE_REF:-}" ] || ! has_image "$ref"; then
    base=$(make_base)
    say "building $ref (the first time takes some minutes)"
    build "$folder" "$ref" "$base"
  fi
  say "$ref has $(docker image inspect --format '{{.Size}}' "$ref" | awk '{ printf "%.2f GB", $1 / 1e9 }')"
  echo "$ref"
}

if [ "${1:-}" = --all ]; then
  [ -z "${NOTEBOX_IMAGE_REF:-}" ] || die "NOTEBOX_IMAGE_REF names one image, and --all builds one for each language: name the language instead"
  names=$(image -list)
  for name in $names; do make_image "$name"; done
else
  make_image "${1:-jupyter}"
fi
