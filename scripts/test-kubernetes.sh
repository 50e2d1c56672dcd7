#!/usr/bin/env bash
# Starts a Kubernetes cluster here, prints a line for each test on it, takes it down, and looks that
# nothing of it is left. KEEP=1 leaves it running. With arguments (-run Attach) of go test.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly cluster=$root/scripts/cluster.sh
readonly image=debian:trixie-slim # what the pods of tests/cluster run

# left prints what of a cluster is on this machine.
left() {
  as_root grep -lsz "^NOTEBOX_CLUSTER=$root/.cluster\$" /proc/[0-9]*/environ || true
  grep -sF "$root/.cluster" /proc/self/mountinfo || true
  ip -brief link | grep -E '^nbc' || true
  ip route | grep -E '(^| )10\.8[789]\.' || true
  find /sys/fs/cgroup -maxdepth 2 -name notebox-cluster
  as_root iptables-save | grep -E 'KUBE|10\.8[789]\.' || true
  as_root nft list tables | grep -E 'kube' || true
  find "$root/.cluster" -mindepth 1 -maxdepth 1 ! -name bin ! -name logs
}
settings() { sysctl -N -a 2>/dev/null | grep -E '^(vm\.(overcommit_memory|panic_on_oom)|kernel\.(panic|panic_on_oops|keys\.root_.*))$' | xargs sysctl; }

before=$(settings)
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
export NOTEBOX_TEST_KUBECONFIG=$root/.cluster/pki/admin.kubeconfig
cd "$root/tests/cluster"
# shellcheck disable=SC2016  # awk's
go test -count 1 -v -timeout 30m "$@" . 2>&1 | tee "$root/.cluster/logs/test.log" |
  awk '/^ *--- / { sub(/^Test/, "", $3); print $3, $2 == "PASS:" ? "pass" : $2 == "SKIP:" ? "SKIP" : "FAIL"; fflush() }' || {
  grep -vE '^(=== |ok|PASS)' "$root/.cluster/logs/test.log" >&2
  exit 1
}
