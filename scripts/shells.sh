#!/usr/bin/env bash
# Installs the shells into which a test types, where they are missing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

are_there() { command -v zsh >/dev/null && command -v fish >/dev/null; }

if are_there; then exit; fi
lock shells
if are_there; then exit; fi # installed while we waited
if ! is_debian || ! can_be_root; then die "zsh or fish is missing: install them"; fi
install zsh fish >&2
