#!/usr/bin/env bash
# Makes sure that the daemon has debian:trixie-slim: the one that is there, else the
# registry's, else (where no registry can be reached) one made here from Debian's packages.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly image=debian:trixie-slim
readonly suite=trixie
readonly pull_seconds=120 # 30 MB; a registry that needs longer is as good as none

has_image "$image" && exit 0
lock base-image
has_image "$image" && exit 0

say "pulling $image"
timeout "$pull_seconds" docker pull -q "$image" >/dev/null 2>&1 9>&- && exit 0

say "no registry answers: making $image from Debian's packages"
if ! is_debian || ! can_be_root; then die "that needs Debian or Ubuntu, and root or sudo"; fi
readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if ! command -v mmdebstrap >/dev/null || [ ! -e "$keyring" ]; then
  install mmdebstrap debian-archive-keyring
fi

# host_mirror LABEL: where this host itself gets Debian's packages from, if it does.
host_mirror() {
  apt-get indextargets --format "\$(ORIGIN)|\$(LABEL)|\$(REPO_URI)" |
    sed -n "s,^Debian|$1|\(.*[^/]\)/*$,\1,p" | sort -u | head -n 1
}
mirror=$(host_mirror Debian)
security=$(host_mirror Debian-Security)
sources=() # none: mmdebstrap's default
if [ -n "$mirror" ]; then
  entry="deb [signed-by=$keyring]"
  sources=("$entry $mirror $suite main" "$entry $mirror $suite-updates main"
    "$entry ${security:-$mirror-security} $suite-security main")
fi

# What makes the registry's image slim, now and for what is installed later: no
# documentation, no translations, no package lists and caches.
options=(--dpkgopt=force-unsafe-io '--aptopt=Acquire::Languages "none"'
  '--aptopt=Acquire::GzipIndexes "true"'
  '--aptopt=Dir::Cache::pkgcache ""' '--aptopt=Dir::Cache::srcpkgcache ""')
for dir in doc groff info linda lintian locale man; do
  options+=("--dpkgopt=path-exclude=/usr/share/$dir/*")
done
options+=(--dpkgopt=path-include=/usr/share/doc/*/copyright)

# Tagged when all of it has arrived. The tree is in /var/tmp, as /tmp may be nodev. The
# two files left out are this host's; a container has its own.
id=$(as_root env TMPDIR=/var/tmp mmdebstrap --variant=minbase --quiet --format=tar "${options[@]}" \
  "$suite" - "${sources[@]}" 9>&- |
  mmtarfilter --path-exclude=/etc/resolv.conf --path-exclude=/etc/hostname |
  docker import --change 'CMD ["bash"]' -)
docker tag "$id" "$image"
say "made $image"
