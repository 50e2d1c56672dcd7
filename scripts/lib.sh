# shellcheck shell=bash
# What the scripts in this folder share. Sourced, never run.

# A command whose output is taken fails as others do.
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:/usr/sbin:/sbin # dockerd; an ordinary user's PATH lacks them

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

# as_root CMD…: the installing and starting, which an ordinary user needs sudo for.
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
can_be_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }
is_debian() { command -v apt-get >/dev/null && grep -qE '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release; }

can_install() { is_debian && can_be_root; }
has_compose() { docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null; }

# Only one of the scripts called NAME acts at a time on this machine, so that two
# calls of make do not start two daemons or build one image twice.
lock() {
  exec 9>>"/tmp/notebox-$1-$(id -u).lock"
  flock -n 9 || { say "waiting for another $1 script to end"; flock 9; }
}

# try CMD…: three times. A network that fails for a moment is no reason to fail a build.
try() {
  local pause
  for pause in 5 20; do
    if "$@"; then return; fi
    say "once more in $pause s: $*"
    sleep "$pause"
  done
  "$@"
}

# quietly CMD…: what it says is shown if it fails.
quietly() (
  log=$(mktemp)
  trap 'rm -f -- "$log"' EXIT
  "$@" >"$log" 2>&1 8>&- 9>&- || { result=$?; cat "$log" >&2; exit "$result"; }
)

# apt_get ARGUMENT…: one at a time, because make runs scripts side by side.
apt_get() (
  exec 8>>"/tmp/notebox-apt-$(id -u).lock"
  flock 8
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"
)

# install PACKAGE…: from the distribution.
install() {
  say "installing $*"
  try apt_get update -qq
  try apt_get install -y -q --no-install-recommends "$@"
}

# until_ok CMD…: tries until it works, and shows what it said at last if it does not.
readonly until_ok_seconds=120 # a busy machine starts a container in one minute
until_ok() {
  local end=$((SECONDS + until_ok_seconds)) said
  until said=$("$@" 2>&1); do
    if [ "$SECONDS" -ge "$end" ]; then
      printf '%s\n' "$said" >&2
      die "not within $until_ok_seconds s: $*"
    fi
    sleep 1
  done
}

docker_answers() { timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# has_image REF: there is such an image on the daemon.
has_image() { docker image inspect --format '{{.Id}}' "$1" >/dev/null 2>&1; }

# buildkit_client prints the first docker client that can build with secrets: one that
# has the buildx plugin, or one from before 23.0, which brought BuildKit itself.
buildkit_client() {
  local client
  for client in "$(command -v docker)" /usr/bin/docker; do
    [ -x "$client" ] || continue
    if "$client" buildx version >/dev/null 2>&1 ||
      [ "$("$client" version --format '{{.Client.Version}}' 2>/dev/null | cut -d. -f1)" -lt 23 ]; then
      echo "$client"
      return
    fi
  done
  die "this docker client cannot build with secrets: install its buildx plugin (package docker-buildx)"
}

# ca_bundle prints the file with the certificates that this host trusts: whatever the
# user has set for the common tools, else the system's (Debian, Fedora, Alpine, macOS).
ca_bundle() {
  local file
  for file in "${SSL_CERT_FILE:-}" "${PIP_CERT:-}" "${REQUESTS_CA_BUNDLE:-}" "${CURL_CA_BUNDLE:-}" \
    /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
    if [ -f "$file" ] && [ -r "$file" ]; then
      echo "$file"
      return
    fi
  done
}

# go_settings prints where this host's Go finds modules, as assignments for a shell.
go_settings() {
  local name
  command -v go >/dev/null || return 0
  for name in GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE; do
    printf '%s=%q\n' "$name" "$(go env "$name")"
  done
}

# build_image DOCKERFILE CONTEXT REF [ARGUMENT…]: builds with what this host needs to
# reach the world. Its CA bundle, its pip.conf, its .npmrc and Go's settings are secrets of the build,
# its proxies predefined build arguments: none of it is in the image or its history. The
# host's network, because a company's proxy or name server may be reachable from there alone.
# A line is shown for each step, and the whole log if one fails.
# The secrets are gone also if the build is interrupted.
build_image() (
  dockerfile=$1 context=$2 ref=$3
  shift 3
  client=$(buildkit_client)
  work=$(mktemp -d)
  trap 'rm -f -- "$work/pip.conf" "$work/npmrc" "$work/go" "$work/log"; rmdir -- "$work"' EXIT
  python3 "$root/scripts/pip-conf.py" >"$work/pip.conf"
  python3 "$root/scripts/npm-conf.py" >"$work/npmrc"
  go_settings >"$work/go"
  set -- "$@" --secret "id=pip,src=$work/pip.conf" --secret "id=npm,src=$work/npmrc" --secret "id=go,src=$work/go"
  ca=$(ca_bundle)
  if [ -n "$ca" ]; then set -- "$@" --secret "id=ca,src=$ca"; fi
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if [ -n "${!name:-}" ]; then set -- "$@" --build-arg "$name"; fi
  done
  DOCKER_BUILDKIT=1 "$client" build --progress=plain --network=host "$@" \
    --file "$dockerfile" --tag "$ref" "$context" 2>&1 9>&- | tee "$work/log" | build_steps "$ref" ||
    { cat "$work/log" >&2; exit 1; }
)

# build_steps REF shows the headings of docker build's log, "#7 [4/9] RUN …", once each.
build_steps() {
  awk -v ref="$1" '/^#[0-9]+ \[[^]]*[0-9]+\/[0-9]+\] / && !seen[$1]++ {
    $1 = ""; gsub(/--mount=[^ ]* */, ""); print ref ":" substr($0, 1, 100); fflush() }' >&2
}
