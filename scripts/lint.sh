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
# The two below are called by check.
# shellcheck disable=SC2317
formatted() {
  local files unformatted
  mapfile -t files < <(git ls-files '*.go')
  unformatted=$(gofmt -l "${files[@]}")
  [ -z "$unformatted" ] || { echo "gofmt wants: $unformatted"; return 1; }
}
# shellcheck disable=SC2317
in_harness() { (cd environments/harness && "$root/.venv/bin/$1" "${@:2}"); }

scripts/python-tools.sh || exit 1
command -v shellcheck >/dev/null || install shellcheck || exit 1
check gofmt formatted
check "go vet" go vet ./...
check staticcheck go tool -modfile=tools.mod staticcheck ./...
check "import rule" go tool -modfile=tools.mod depguard ./...
check "ruff check" in_harness ruff check --no-cache
check "ruff format" in_harness ruff format --no-cache --check
check mypy in_harness mypy --cache-dir="$root/.venv/mypy" .
check shellcheck shellcheck -x scripts/*.sh .ci/run
exit "$failed"
