#!/usr/bin/env bash
# Searches at random for inputs that break what meets untrusted bytes: every Fuzz
# function of the Go packages, and the harness's properties.
#
#   FUZZTIME   for each Go target, default 30s
#   FUZZJOBS   targets at a time, default the number of cores
#   --report   what is found is told, and is no failure: a new input says nothing about
#              the change at hand. Seeds and what was found earlier still are (go test).
#   TARGET…    regular expressions; without any, all
#
# What is found is kept in testdata/fuzz, as go test keeps it, where go test tries it
# ever after; with --report in bin/fuzz, out of its way, and printed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

readonly fuzztime=${FUZZTIME:-30s}
jobs=${FUZZJOBS:-$(getconf _NPROCESSORS_ONLN)}
readonly jobs
# One worker's memory. The first makes Go collect its garbage in time; the second is of
# addresses, of which Go reserves far more than it uses, and ends what runs away.
readonly soft_limit=1GiB hard_limit_kib=$((8 << 20))
readonly print_bytes=4096 # of an input that is printed; a larger one is only named
# What is watched for coverage: this module and the decoders below it. With all of the
# standard library, as go test -fuzz does it, half as many inputs are tried, and
# the tests' own machinery counts as interesting.
readonly watched=(
  notebox/... encoding/... mime/... net/url net/textproto net/netip image/...
  github.com/go-json-experiment/json/... golang.org/x/net/html/... golang.org/x/image/...
)

report=
targets=
for argument; do
  case $argument in
    --report) report=yes ;;
    -*) die "unknown option $argument" ;;
    *) targets=${targets:+$targets|}$argument ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
readonly found=$root/bin/fuzz
corpus=$(go env GOCACHE)/fuzz/$(go list -m) # where go test -fuzz and go clean -fuzzcache look
readonly corpus

# compile makes one program for each package that has targets, and lists them as lines
# "folder program target".
compile() {
  local folder program flags=() pattern
  for pattern in "${watched[@]}"; do flags+=("-gcflags=$pattern=-d=libfuzzer"); done
  while read -r folder; do
    program=$work/$(tr / - <<<"$folder").test
    go test -c "${flags[@]}" -o "$program" "$folder" || return
    (cd "$folder" && "$program" -test.list '^Fuzz') | grep '^Fuzz' | grep -E "${targets:-.}" |
      sed "s|^|$folder $program |" || true # none that was asked for
  done < <(grep -rlE '^func Fuzz\w*\(f \*testing\.F\)' --include='*_test.go' . | xargs -r dirname | sort -u)
}

# search FOLDER PROGRAM TARGET: tries one target, and prints its line. Its output is in
# $work/TARGET.log; findings are lines "FOLDER TARGET INPUT" in $work/found.
search() (
  folder=$1 program=$2 target=$3
  log=$work/$(tr / - <<<"$folder")-$target.log
  cd "$folder"
  ulimit -v "$hard_limit_kib"
  if GOMEMLIMIT=$soft_limit "$program" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$fuzztime" \
    -test.parallel 1 -test.fuzzminimizetime 200x -test.fuzzcachedir "$corpus/${folder#./}" >"$log" 2>&1; then
    result=ok
  else
    result=FOUND
    input=$(sed -n 's|.*Failing input written to \(testdata/.*\)|\1|p' "$log" | tail -n 1)
    if [ -n "$input" ]; then
      echo "$folder $target $input" >>"$work/found"
    elif grep -q 'context deadline exceeded' "$log"; then
      result="ok (ended late)" # the clock ended it, not an input
    else
      result=BROKEN # a seed, or the target itself: that is no luck
      { echo "$folder $target:"; cat "$log"; } >>"$work/broken"
    fi
  fi
  tried=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  printf '%-40s %10s inputs  %s\n' "${folder#./} $target" "${tried:-0}" "$result"
)

# tell prints what was found; in a report it takes the inputs out of go test's way.
tell() {
  local folder target input
  while read -r folder target input; do
    echo
    echo "== found: $folder $target"
    sed -n '/--- FAIL/,$p' "$work/$(tr / - <<<"$folder")-$target.log" | head -n 40
    if [ -n "$report" ]; then
      mkdir -p "$found/$target"
      mv "$folder/$input" "$found/$target/"
      rmdir --ignore-fail-on-non-empty -p "$folder/$(dirname "$input")"
      echo "to keep as a seed, as $folder/$input:"
      if [ "$(wc -c <"$found/$target/$(basename "$input")")" -le "$print_bytes" ]; then
        base64 "$found/$target/$(basename "$input")"
      fi
      input=$found/$target/$(basename "$input")
    else
      input=$folder/$input
    fi
    echo "input: $input"
  done <"$work/found"
}

wants_harness() { [ -z "$targets" ] || [[ harness =~ ^($targets)$ ]]; }

# harness tries its properties; it takes the time that it takes.
harness() {
  wants_harness || return 0
  scripts/python-tools.sh
  if (cd environments/harness && NOTEBOX_HYPOTHESIS=random ../../.venv/bin/python -m pytest \
    -q --show-capture=no -p no:cacheprovider -m hypothesis >"$work/harness.log" 2>&1); then
    tail -n 1 "$work/harness.log" | sed 's/^/harness: /'
  else
    case $? in
      1) echo "harness" >>"$work/found-harness" ;;
      *) { echo harness:; cat "$work/harness.log"; } >>"$work/broken" ;; # not even collected
    esac
    echo "harness: FOUND"
  fi
}

say "compiling"
list=$(compile) || die "not all compiles"
[ -n "$list" ] || wants_harness || die "there is no such target"
say "$(grep -c . <<<"$list" || true) targets, $jobs at a time, $fuzztime each"
touch "$work/found" "$work/found-harness" "$work/broken"
export -f search
export work fuzztime soft_limit hard_limit_kib corpus
harness &
if [ -n "$list" ]; then
  xargs -P "$jobs" -L 1 bash -c 'search "$@"' search <<<"$list"
fi
wait

tell
[ ! -s "$work/found-harness" ] || { echo; echo "== found: harness"; cat "$work/harness.log"; }
if [ -s "$work/broken" ]; then
  echo
  echo "== broken, whatever the luck:"
  cat "$work/broken"
  exit 1
fi
count=$(($(grep -c . "$work/found" || true) + $(grep -c . "$work/found-harness" || true)))
[ "$count" = 0 ] && { say "nothing was found"; exit 0; }
echo
say "FOUND: $count, see above"
[ -n "$report" ] || exit 1
