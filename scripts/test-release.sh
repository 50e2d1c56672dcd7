#!/usr/bin/env bash
# Makes a release as a snapshot, with its bills of materials, and installs it: by install.sh, and the
# Debian package in a container with systemd, where the unit serves, goes on after an update, and
# leaves nothing when it is purged. The sandboxes are this machine's.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

# The newest goreleaser that go.mod's Go compiles.
readonly tools=(github.com/goreleaser/goreleaser/v2@v2.15.1 github.com/anchore/syft/cmd/syft@v1.57.1)
readonly container=notebox-test-release-$$
work=$(mktemp -d)
finish() {
  [ $? = 0 ] || inside journalctl --no-pager -u notebox >&2 2>/dev/null || true
  docker rm -f "$container" >/dev/null 2>&1 || true
  rm -rf -- "$work"
}
# inside CMD…: in the container.
inside() { docker exec -i "$container" "$@"; }
trap finish EXIT
lock test-release # dist is one folder

"$root/scripts/docker.sh"
"$root/scripts/base-image.sh"
"$root/scripts/image.sh" >/dev/null
unset GOFLAGS # .goreleaser.yaml has its own
for tool in "${tools[@]}"; do
  say "compiling $tool, some minutes the first time"
  GOBIN=$root/.release quietly go install "$tool"
done
PATH=$root/.release:$PATH
quietly goreleaser check
quietly goreleaser release --snapshot --clean
(cd dist && sha256sum --quiet -c checksums.txt)
for archive in dist/*.tar.gz; do
  jq -e '.packages | length > 100' "$archive.sbom.json" >/dev/null || die "$archive has no bill of materials"
done
say "a release with its bills of materials is in dist"

quietly ./install.sh dist "$work/local"
"$work/local/bin/notebox" version

# call PATH [CURL FLAG…]: a request with the key.
call() { inside curl -sSf -H "Authorization: Bearer $secret" "localhost:8080$1" "${@:2}"; }
status() { inside curl -s -o /dev/null -w '%{http_code}' localhost:8080/v1/environments; }

build_image scripts/release/Dockerfile scripts/release notebox/test-release
docker run -d --name "$container" --env container=docker --cgroupns=private --cap-add SYS_ADMIN --cap-add SYS_PTRACE \
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
  --tmpfs /run --tmpfs /tmp -v /var/run/docker.sock:/var/run/docker.socket notebox/test-release >/dev/null
until_ok inside systemctl is-active multi-user.target
inside groupadd -g "$(stat -Lc %g /var/run/docker.sock)" docker
inside ln -s docker.socket /var/run/docker.sock
docker cp dist/notebox_*_linux_"$(go env GOARCH)".deb "$container:/notebox.deb"

quietly inside dpkg -i /notebox.deb
quietly inside systemctl enable --now notebox
until_ok inside curl -sf localhost:8080/readyz
[ "$(status)" = 401 ] || die "without a key somebody is let in"
secret=$(inside notebox key -file /var/lib/notebox/api-keys alice)
until_ok call /v1/environments
inside su someone -s /bin/sh -c '! cat /var/lib/notebox/api-keys && ! cat /etc/notebox/environment' 2>/dev/null || die "others may read the keys or the settings"
[ "$(inside stat -c %u "/proc/$(inside systemctl show -P MainPID notebox)")" != 0 ] || die "the service is root"
session=$(call /v1/sessions --json '{}' | jq -r .id)
[ "$(call /v1/execute --json "{\"session\": \"$session\", \"code\": \"x = 41\"}" | jq -r .status)" = ok ] || die "the unit runs nothing"
say "the unit of the package serves"

quietly inside dpkg -i /notebox.deb
quietly inside systemctl restart notebox
until_ok inside curl -sf localhost:8080/readyz
[ "$(call /v1/execute --json "{\"session\": \"$session\", \"code\": \"x + 1\"}" | jq -r .text)" = 42 ] || die "the session is lost"
call "/v1/sessions/$session" -X DELETE >/dev/null
inside journalctl --no-pager -u notebox >"$work/journal"
grep -qF "notebox serves" "$work/journal" || die "the journal has nothing of the service"
if grep -qF "$secret" "$work/journal"; then die "the key is in the journal"; fi
# shellcheck disable=SC2016  # for the inner shell
quietly inside sh -ec 'systemd-run --quiet --pipe --wait -p DynamicUser=yes -p User=notebox -p SupplementaryGroups=docker \
  -p StateDirectory=notebox -p StateDirectoryMode=0700 -p "Environment=$(systemctl show -P Environment notebox)" \
  -p EnvironmentFile=-/etc/notebox/environment notebox doctor' # as docs/operate.md says
say "the session outlived an update"

quietly inside dpkg -P notebox
# shellcheck disable=SC2016  # for the inner shell
inside sh -c 'for path in /usr/bin/notebox /etc/notebox /var/lib/notebox /var/lib/private/notebox /etc/systemd/system/*/notebox.service; do
  if [ -e "$path" ] || [ -L "$path" ]; then echo "$path"; fi
done' >"$work/left"
[ ! -s "$work/left" ] || die "a purge leaves $(cat "$work/left")"
[ "$(inside systemctl is-active notebox)" = inactive ] || die "the service goes on"
say "the package works"

inside mkdir /release
for file in install.sh dist/checksums.txt dist/notebox_*_linux_"$(go env GOARCH)".tar.gz; do docker cp "$file" "$container:/release/"; done
quietly inside /release/install.sh /release
quietly inside systemctl daemon-reload
quietly inside systemctl enable --now notebox
until_ok inside curl -sf localhost:8080/readyz
quietly inside systemctl stop notebox
say "the archive's unit serves"
