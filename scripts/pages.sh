#!/usr/bin/env bash
# Fills server/pages/assets, which the program embeds, from two npm packages of exact
# version and hash. Needed only to move to other versions: change the lines below (the hash
# is what `npm view NAME@VERSION dist.integrity` says), and run this.
#
# pages.sh --check changes nothing: it fails where the assets are not what the packages hold.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export LC_ALL=C # one order

# The files that are taken are complete in themselves, so nothing that the packages depend
# on is installed, and none of their scripts is run.
readonly redoc=redoc@3.0.1
readonly redoc_hash=sha512-KDfoKaYW19LCl4YStgBnwlaNjYEFfs5zCNt1s1WZ2YM5u8d26Yuzd2l43fZO851ZsgIMe/D640fDJkD8eaRQKQ==
readonly swagger=swagger-ui-dist@5.35.0
readonly swagger_hash=sha512-U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAhw0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ==
readonly assets=$root/server/pages/assets

readonly check=${1:-}
case $check in '' | --check) ;; *) die "usage: pages.sh [--check]" ;; esac
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
  if ! is_debian || ! can_be_root; then die "node and npm are missing: install Node.js 18 or newer"; fi
  install nodejs npm
fi
# Node knows the certificates of its own alone, where it is not told of the host's.
if [ -z "${NODE_EXTRA_CA_CERTS:-}" ]; then
  NODE_EXTRA_CA_CERTS=$(ca_bundle)
  export NODE_EXTRA_CA_CERTS
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir "$work/files"

# hash_of FILE, in the form in which npm writes it.
hash_of() { node -p '"sha512-" + crypto.createHash("sha512").update(fs.readFileSync(process.argv[1])).digest("base64")' "$1"; }

# fetch PACKAGE@VERSION HASH: unpacks it below $work, if it is what it was.
fetch() {
  local folder=$work/$1 archive
  mkdir "$folder"
  archive=$folder/$(cd "$folder" && try npm pack --silent --ignore-scripts "$1")
  [ "$(hash_of "$archive")" = "$2" ] || die "$1 does not have the hash $2"
  tar -xzf "$archive" -C "$folder" --strip-components=1
}

# take PACKAGE@VERSION NAME FILE…: the files, one after another, are the asset NAME.
take() {
  local package=$1 name=$2
  shift 2
  (cd "$work/$package" && cat "$@") >"$work/files/$name"
  (cd "$work/files" && sha256sum "$name") | sed "s,  ,  $package/," >>"$work/SHA256SUMS"
}

fetch "$redoc" "$redoc_hash"
# Redoc names its maker with a picture from its maker's server, which our page may not
# ask; the name alone is put in its place.
readonly pictures='https://cdn\.redoc\.ly/redoc/logo-mini(-full)?\.svg'
readonly maker="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='56' height='16'%3E%3Ctext y='12' font-family='sans-serif' font-size='13' fill='%23777'%3ERedocly%3C/text%3E%3C/svg%3E"
sed -i -E "s|$pictures|$maker|g" "$work/$redoc/bundles/redoc.standalone.js"
take "$redoc" redoc.LICENSE.txt LICENSE
take "$redoc" redoc.standalone.js bundles/redoc.standalone.js
fetch "$swagger" "$swagger_hash"
take "$swagger" swagger-ui.LICENSE.txt NOTICE LICENSE swagger-ui-bundle.js.LICENSE.txt
take "$swagger" swagger-ui-bundle.js swagger-ui-bundle.js
take "$swagger" swagger-ui.css swagger-ui.css

if [ -n "$check" ]; then
  cmp "$work/SHA256SUMS" "$assets/SHA256SUMS" || die "the assets are not what the packages hold: run scripts/pages.sh"
  say "the assets are what the packages hold"
  exit
fi
mkdir -p "$assets"
rm -f -- "$assets"/*.gz
gzip -9 -n "$work/files"/*
cp "$work/files"/*.gz "$work/SHA256SUMS" "$assets/"
say "$(du -cb "$assets"/*.gz | tail -n 1 | cut -f1) bytes in $assets"
