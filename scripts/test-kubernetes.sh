#!/usr/bin/env bash
# Starts a Kubernetes cluster here, prints a line for each test on it, takes it down, and looks that
# nothing of it is left. KEEP=1 leaves it running, CLUSTER=1 has another than the one that runs here.
# With arguments (-run Attach) of go test.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly which=${CLUSTER:-0} cluster=$root/scripts/cluster.sh
state=$root/.cluster
[ "$which" = 0 ] || state+=-$which
readonly state
readonly image=debian:trixie-slim # what the pods of tests/cluster run

# left prints what of the cluster is on this machine.
left() {
  as_root grep -lsz "^NOTEBOX_CLUSTER=$state\$" /proc/[0-9]*/environ || true
  grep -sF "$state/" /proc/self/mountinfo || true
  ip -brief link | grep -E "^nbc${which}[- ]" || true
  ip route | grep -E "nbc$which-" || true
  find /sys/fs/cgroup -maxdepth 2 -name "notebox-cluster-$which"
  as_root iptables-save | grep -E 'KUBE|CNI-' || true
  as_root nft list tables | grep -E 'kube' || true
  as_root ipset list -name || true
  find "$state" -mindepth 1 -maxdepth 1 ! -name bin ! -name logs
}
# settings prints those of the machine that a kubelet sets.
settings() { sysctl -N -a 2>/dev/null | grep -E '^(vm\.(overcommit_memory|panic_on_oom)|kernel\.(panic|panic_on_oops|keys\.root_.*))$' | xargs sysctl; }

before=$(settings)
# shellcheck disable=SC2317 # the trap calls it
finish() {
  result=$?
  [ -z "${KEEP:-}" ] || exit "$result"
  "$cluster" down || result=1
  if [ -n "$(left)" ] || [ "$(settings)" != "$before" ]; then
    echo "NothingIsLeft FAIL"
    left
    diff <(echo "$before") <(settings) || true
    exit 1
  fi
  echo "NothingIsLeft pass"
  exit "$result"
}
trap finish EXIT

"$root/scripts/docker.sh"
"$root/scripts/base-image.sh"
"$cluster" up
"$cluster" load "$image"
# What the chart's tests install.
"$root/scripts/compose-build.sh"
NOTEBOX_TEST_SERVICE_IMAGE=notebox/service:compose
NOTEBOX_TEST_JUPYTER_IMAGE=$("$root/scripts/image.sh" jupyter)
NOTEBOX_TEST_BASH_IMAGE=$("$root/scripts/image.sh" bash)
export NOTEBOX_TEST_SERVICE_IMAGE NOTEBOX_TEST_JUPYTER_IMAGE NOTEBOX_TEST_BASH_IMAGE
"$cluster" load "$NOTEBOX_TEST_SERVICE_IMAGE" "$NOTEBOX_TEST_JUPYTER_IMAGE" "$NOTEBOX_TEST_BASH_IMAGE"
export NOTEBOX_TEST_KUBECONFIG=$state/pki/admin.kubeconfig
export CGO_ENABLED=0 # as in the build, whose compiled packages are used again

# tests FOLDER ARGUMENTS…: the tests of a folder, a line for each.
tests() {
  cd "$root/$1"
  # shellcheck disable=SC2016  # awk's
  go test -trimpath -tags disable_grpc_modules,grpcnotrace -count 1 -v -timeout 30m "${@:2}" . 2>&1 | tee "$state/logs/test.log" |
    awk '/^ *--- / { sub(/^Test/, "", $3); print $3, $2 == "PASS:" ? "pass" : $2 == "SKIP:" ? "SKIP" : "FAIL"; fflush(); bad = bad || $2 == "SKIP:" } END { exit bad }' || {
    grep -vE '^(=== |ok|PASS)' "$state/logs/test.log" >&2
    exit 1
  }
}
tests tests/cluster "$@"
tests runner/kubernetes "$@"
