#!/usr/bin/env bash
# Makes server/page/assets, which the program embeds, of server/page/source: tsc checks the
# types, esbuild makes the files. The npm packages are those of server/page/package-lock.json,
# by version and hash; all of them are in .page.
#
# page.sh --check changes nothing: it fails where the assets are not what the source makes.
# page.sh --packages installs the packages alone, and prints their folder.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

# What shows widgets in a frame is complete in itself, so nothing that its package depends on is
# installed. The hash is what `npm view NAME@VERSION dist.integrity` says.
readonly widgets=@jupyter-widgets/html-manager@1.0.15
readonly widgets_hash=sha512-5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==

readonly list=$root/server/page # package.json and its lock
readonly folder=$root/.page
readonly wish=${1:-}
case $wish in '' | --check | --packages) ;; *) die "usage: page.sh [--check | --packages]" ;; esac

wanted() { cat "$list/package-lock.json" && echo "$widgets $widgets_hash"; }
is_there() { [ -f "$folder/installed" ] && wanted | cmp -s - "$folder/installed"; }

# fetch_widgets unpacks the package beside the others, if it is what it was.
fetch_widgets() {
  local archive hash place=$folder/node_modules/@jupyter-widgets/html-manager
  mkdir -p "$place"
  archive=$folder/$(cd "$folder" && try npm pack --silent --ignore-scripts "$widgets")
  hash=$(node -p '"sha512-" + crypto.createHash("sha512").update(fs.readFileSync(process.argv[1])).digest("base64")' "$archive")
  [ "$hash" = "$widgets_hash" ] || die "$widgets does not have the hash $widgets_hash"
  tar -xzf "$archive" -C "$place" --strip-components=1
  rm -f -- "$archive"
}

install_packages() {
  if is_there; then return; fi
  lock page
  if is_there; then return; fi # installed while we waited
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    if ! is_debian || ! can_be_root; then die "node and npm are missing: install Node.js 20 or newer"; fi
    install nodejs npm
  fi
  # Node knows the certificates of its own alone, where it is not told of the host's.
  if [ -z "${NODE_EXTRA_CA_CERTS:-}" ]; then
    NODE_EXTRA_CA_CERTS=$(ca_bundle)
    export NODE_EXTRA_CA_CERTS
  fi
  mkdir -p "$folder"
  rm -f "$folder/installed"
  cp "$list/package.json" "$list/package-lock.json" "$folder/"
  # No scripts of packages: none is needed, and each would run as this user.
  (cd "$folder" && try npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2 9>&-)
  fetch_widgets
  wanted >"$folder/installed"
}

install_packages
if [ "$wish" = --packages ]; then
  echo "$folder/node_modules"
  exit
fi
"$folder/node_modules/.bin/tsc" --project server/page/source
if [ "$wish" = --check ]; then
  go run ./server/page/bundle -packages "$folder/node_modules" -check
  say "the page's assets are what its source makes"
else
  go run ./server/page/bundle -packages "$folder/node_modules"
fi
