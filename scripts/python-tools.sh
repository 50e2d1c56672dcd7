#!/usr/bin/env bash
# Makes .venv with the tools that check the harness, once for each version of their list.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly list=$root/environments/harness/tests/requirements.txt
readonly venv=$root/.venv
if cmp -s "$list" "$venv/requirements.txt"; then
  exit 0
fi
lock python-tools
say "installing what checks the harness"
if ! python3 -m venv --clear "$venv" 2>/dev/null; then
  if ! is_debian || ! can_be_root; then die "python3 cannot make a virtual environment: install its venv module"; fi
  install python3-venv
  python3 -m venv --clear "$venv"
fi
"$venv/bin/pip" install -q --disable-pip-version-check -r "$list"
cp "$list" "$venv/requirements.txt"
