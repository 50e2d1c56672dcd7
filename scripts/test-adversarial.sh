#!/usr/bin/env bash
# test-adversarial.sh [FLAG…]: sends every bad input of tests/adversarial/cases to the real service,
# a line a case, and then has the faults, which are Go tests, a line each. With flags (-cases
# 'A.*|C8', -show) the cases alone.
set -uo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root" || exit 1

failed=0
# In the folder: with a list of packages go test holds back what a passing one prints.
(cd tests/adversarial && go test -count 1 -run TestCases -timeout 20m "$@") || failed=1
[ $# = 0 ] || exit "$failed"

export NOTEBOX_TEST_FAULTS=all # a machine that cannot show a fault fails
while read -r id folder test; do
  [ "$id" != "#" ] || continue
  start=$SECONDS
  if out=$(go test "./$folder" -count 1 -run "^$test\$" -timeout 10m 2>&1 </dev/null) && ! grep -q "no tests to run" <<<"$out"; then
    echo "$id pass $((SECONDS - start))s"
  else
    failed=1
    echo "$id FAIL $((SECONDS - start))s"
    echo "$out"
  fi
done <tests/adversarial/testdata/elsewhere.txt
exit "$failed"
