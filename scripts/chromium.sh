#!/usr/bin/env bash
# Prints the path of a Chromium, with which a test opens the pages. Where there is none, the
# distribution's is installed, the headless one if it has that: it is smaller.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly names=(chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable)

found() {
  local name
  for name in "${names[@]}"; do
    if command -v "$name"; then return; fi
  done
  return 1
}

if found; then exit; fi
lock chromium
if found; then exit; fi # installed while we waited
if ! is_debian || ! can_be_root; then die "no browser: install Chromium or Google Chrome"; fi
offers() { apt-cache show "$1" >/dev/null 2>&1; }
if ! offers chromium-headless-shell; then try apt_get update -qq; fi # there may be no list yet
package=chromium
if offers chromium-headless-shell; then package=chromium-headless-shell; fi
install "$package" >&2
found || die "$package is installed, and brought no browser under a known name"
