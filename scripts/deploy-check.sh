#!/usr/bin/env bash
# Looks at what deploys notebox, and starts none of it: compose.yaml with each profile, and the unit
# of systemd and how open that is. What this machine has no tool for is passed over, unless
# NOTEBOX_TEST_DEPLOY=all.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

readonly most_exposed=15 # tenths of systemd's scale, on which 100 is an open door
readonly least_systemd=250 # the first whose "security" reads a unit that is not loaded

# pass_over WHAT WHY
pass_over() {
  if [ "${NOTEBOX_TEST_DEPLOY:-}" = all ]; then die "not looked at: $1, as $2"; fi
  say "not looked at: $1, as $2"
}

export DOCKER_GID=0
if has_compose || can_install; then
  for profile in "" $(sed -n 's/^    profiles: \[\(.*\)\]$/\1/p' compose.yaml | sort -u); do
    PROFILES=$profile quietly scripts/compose.sh config
  done
  COMPOSE_FILE=deploy/compose/sidecar.yaml JUPYTER_IMAGE=x quietly scripts/compose.sh config
else
  pass_over compose.yaml "there is no Docker Compose"
fi

if ! command -v systemd-analyze >/dev/null; then
  if ! can_install; then
    pass_over "the unit" "there is no systemd-analyze"
    exit
  fi
  install systemd
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
sed 's|^ExecStart=notebox |ExecStart=/bin/true |' deploy/systemd/notebox.service >"$work/notebox.service"
systemd-analyze verify --man=no "$work/notebox.service" >"$work/said" 2>&1 || die "$(cat "$work/said")"
if grep -F notebox.service "$work/said"; then die "the unit is not understood"; fi
version=$(systemd-analyze --version | awk 'NR == 1 { print $2 + 0 }')
if [ "$version" -lt "$least_systemd" ]; then
  pass_over "how open the unit is" "systemd is $version, and that needs $least_systemd"
  exit
fi
quietly systemd-analyze security --offline=true --threshold="$most_exposed" "$work/notebox.service"
