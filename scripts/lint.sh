#!/usr/bin/env bash
# Every linter, each to its end, so that one call shows all there is.
set -uo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root" || exit 1

failed=0
check() {
  say "$1"
  shift
  "$@" || failed=1
}
# Those below are called by check.
# shellcheck disable=SC2317
formatted() {
  local files unformatted
  mapfile -t files < <(git ls-files '*.go')
  unformatted=$(gofmt -l "${files[@]}")
  [ -z "$unformatted" ] || { echo "gofmt wants: $unformatted"; return 1; }
}
# shellcheck disable=SC2317
in_harness() { (cd environments/harness && "$root/.venv/bin/$1" "${@:2}"); }
# Folder by folder: modules of two may have one name.
# shellcheck disable=SC2317
typed() {
  local folder result=0
  in_harness mypy --cache-dir="$root/.venv/mypy" . || result=1
  for folder in environments/*/ server/page/source/members/; do
    if [ "$folder" != environments/harness/ ] && compgen -G "$folder*.py" >/dev/null; then
      MYPYPATH=$root/environments/base in_harness mypy --cache-dir="$root/.venv/mypy-$(basename "$folder")" "$root/$folder"*.py || result=1
    fi
  done
  return "$result"
}

scripts/python-tools.sh || exit 1
command -v shellcheck >/dev/null || install shellcheck || exit 1
check gofmt formatted
check "go vet" go vet ./...
check staticcheck go tool -modfile=tools.mod staticcheck ./...
check "import rule" go tool -modfile=tools.mod depguard ./...
readonly others=("$root"/environments/*/*.py "$root"/server/page/source/members/*.py)
check "ruff check" in_harness ruff check --no-cache --config pyproject.toml . "${others[@]}"
check "ruff format" in_harness ruff format --no-cache --config pyproject.toml --check . "${others[@]}"
check mypy typed
check shellcheck shellcheck -x install.sh deploy/debian/* scripts/*.sh scripts/v2/*.sh scripts/cluster/*.sh environments/base/*.sh .ci/run
check "compose.yaml, unit" scripts/deploy-check.sh
exit "$failed"
