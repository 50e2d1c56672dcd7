#!/usr/bin/env bash
# Every Go test, three packages at a time, since most of what they do is in containers, and
# much of it is waiting. What takes longest starts first.
# Arguments are go test's: "-run X", "-count 1"; GO_PACKAGES names other packages.
# scripts/lint.sh runs go vet, so go test does not.
#
# A test that fails is run once more by itself, when the rest is through, as it may have
# suffered from what ran beside it. If it passes then, the change passes, and that is
# said at the end, by the test's name. More than ten failures are not repeated, nor is what
# fails as a package: what does not compile, a panic, a time limit, TestMain.
set -uo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root" || exit 1

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
gotestsum() { go tool -modfile=tools.mod gotestsum "$@"; }

gotestsum --format pkgname-and-test-fails --format-icons text --hide-summary skipped \
  --rerun-fails=1 --rerun-fails-max-failures=10 --rerun-fails-run-root-test \
  --rerun-fails-report "$work/again" --jsonfile "$work/events" \
  --packages "${GO_PACKAGES:-./tests/adversarial ./tests/e2e/... ./runner/docker ./...}" -- -p 3 -vet=off -timeout 60m "$@"
result=$?
packages=$(python3 scripts/failed-packages.py <"$work/events")
if [ -n "$packages" ]; then
  say "failed as a package, which is not made good by its tests: $packages"
  [ "$result" != 0 ] || result=1
fi

echo
echo "== slowest tests"
gotestsum tool slowest --threshold 5s --jsonfile "$work/events" 2>/dev/null | sort -rn -k3 | head -n 15
if [ "$result" = 0 ] && [ -s "$work/again" ]; then
  echo
  echo "== FAILED AT FIRST, PASSED WHEN RUN AGAIN (runs, failures):"
  sed 's/^/passed when run again: /' "$work/again"
fi
exit "$result"
