#!/usr/bin/env bash
# Looks at what deploys notebox, and starts none of it: compose.yaml with each profile, and the unit
# of systemd and how open that is.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

readonly most_exposed=15 # tenths of systemd's scale, on which 100 is an open door
export DOCKER_GID=0
for profile in "" $(sed -n 's/^    profiles: \[\(.*\)\]$/\1/p' compose.yaml | sort -u); do
  PROFILES=$profile quietly scripts/compose.sh config
done

if ! command -v systemd-analyze >/dev/null; then
  if ! is_debian; then
    say "the unit is not looked at: there is no systemd-analyze"
    exit
  fi
  install systemd
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
sed 's|^ExecStart=notebox |ExecStart=/bin/true |' deploy/systemd/notebox.service >"$work/notebox.service"
systemd-analyze verify --man=no "$work/notebox.service" >"$work/said" 2>&1 || die "$(cat "$work/said")"
if grep -F notebox.service "$work/said"; then die "the unit is not understood"; fi
quietly systemd-analyze security --offline=true --threshold="$most_exposed" "$work/notebox.service"
