#!/usr/bin/env bash
# Builds the programs of tests/cluster into a folder: build.sh BIN
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

readonly bin=$1
cd "$root/tests/cluster"
export CGO_ENABLED=0 # they run in images that have nothing else

# What Kubernetes' own build gives the linker. Helm asks the API server for its version.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
flags=-s
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  for value in "gitVersion=$version" "gitMajor=$(cut -d. -f1 <<<"${version#v}")" "gitMinor=$(cut -d. -f2 <<<"$version")" gitTreeState=clean; do
    flags+=" -X $package.$value"
  done
done
try go build -trimpath -tags=disable_grpc_modules,grpcnotrace -ldflags "$flags" -o "$bin/" \
  ./cluster ./pause ./coredns helm.sh/helm/v3/cmd/helm
