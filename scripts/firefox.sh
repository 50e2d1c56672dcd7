#!/usr/bin/env bash
# Prints the path of a Firefox, with which a test opens the page. Where there is none, the
# distribution's is installed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

found() { command -v firefox-esr || command -v firefox; }

if found; then exit; fi
lock firefox
if found; then exit; fi # installed while we waited
if ! is_debian || ! can_be_root; then die "no Firefox: install it"; fi
if ! apt-cache show firefox-esr >/dev/null 2>&1; then try apt_get update -qq; fi # there may be no list yet
install firefox-esr >&2
found || die "firefox-esr is installed, and brought no program of that name"
