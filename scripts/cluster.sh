#!/usr/bin/env bash
# A real Kubernetes cluster on this machine, for tests, without a container registry:
#   cluster.sh up             builds it, once for each list of versions, and starts what does not run
#   cluster.sh load IMAGE…    gives images of the Docker daemon to all nodes
#   cluster.sh kubectl …      as the administrator; helm … likewise
#   cluster.sh stop|start X   a component or a node (node-1, node-2) that fails, and comes back
#   cluster.sh status         a line for each part
#   cluster.sh down           ends all, and leaves nothing but what was built, and the logs
# CLUSTER=1 (to 9) is another one beside it, with its own networks, in .cluster-1.
# etcd and the control plane are processes of the host; each node has its own namespaces and files.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly which=${CLUSTER:-0}
[[ $which =~ ^[0-9]$ ]] || die "CLUSTER is 0 to 9"
cluster=$root/.cluster
[ "$which" = 0 ] || cluster+=-$which
readonly cluster
readonly module=$root/tests/cluster
readonly nodes=(node-1 node-2)
readonly control=(etcd apiserver controller-manager scheduler)

# Of the networks' names the first part: 10.87 the machines, 10.88 the pods, 10.89 the Services, and
# the next cluster's after them.
readonly machines=10.$((87 + 3 * which)) pods=10.$((88 + 3 * which)) services=10.$((89 + 3 * which))
readonly bridge=nbc$which api=$machines.0.1 port=6443 dns=$services.0.10
readonly cgroups=notebox-cluster-$which # below each controller
# Not the ports of an etcd that is there.
readonly etcd=127.0.0.1:$((23790 + which)) etcd_peers=127.0.0.1:$((23800 + which))
readonly stop_seconds=10                              # etcd closes its files; then it is killed

# What the kubelet sets for the whole machine, and `down` sets back.
readonly sysctls=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes)

number() { echo "${1#node-}"; }
address() { echo "$machines.$(number "$1").2"; }
cable() { echo "$bridge-$(number "$1")"; } # its end at the host
is_node() { [[ " ${nodes[*]} " = *" $1 "* ]]; }

# pid_of NAME prints the process of a part, and fails if it does not run. A number that another
# process got since, after a reboot for one, is not it: ours have the mark.
pid_of() {
  local pid
  pid=$(cat "$cluster/run/$1.pid" 2>/dev/null) || return 1
  grep -qsz "^NOTEBOX_CLUSTER=$cluster\$" "/proc/$pid/environ" || return 1
  echo "$pid"
}

# in_node NODE CMD…: in all of its namespaces.
in_node() {
  local pid
  pid=$(pid_of "$1") || die "$1 does not run"
  shift
  nsenter --target "$pid" --mount --net --pid --uts --ipc -- "$@"
}

# launch NAME CMD…: in the background, to stay, with its log and its pid file. The pid is the
# host's, also of what runs in a node: the shell's /proc is the host's until it has entered.
launch() {
  local name=$1
  shift
  # shellcheck disable=SC2016  # expanded by the inner shell
  NOTEBOX_CLUSTER=$cluster setsid --fork sh -c 'echo $$ >"$1"; log=$2; shift 2
    exec "$@" >>"$log" 2>&1 </dev/null 9>&-' sh "$cluster/run/$name.pid" "$cluster/logs/$name.log" "$@"
}

# launch_in NODE NAME CMD…: in a node, if it does not run there.
launch_in() {
  local node=$1 name=$2
  shift 2
  if pid_of "$node-$name" >/dev/null; then return; fi
  launch "$node-$name" nsenter --target "$(pid_of "$node")" --mount --net --pid --uts --ipc -- "$@"
}

# --- what is built ---------------------------------------------------------------------------

# A build is named after all that is in it.
bin=$root/.cluster/bin/$( (cat "$root/scripts/cluster/build.sh"; cd "$module"
  find . -type f \( -name '*.go' -o -name 'go.*' \) ! -name '*_test.go' -print0 | sort -z | xargs -0 sha256sum) |
  sha256sum | cut -c 1-16)
readonly bin

build() {
  if [ -e "$bin/done" ]; then return; fi
  command -v go >/dev/null || die "go is missing: install it (https://go.dev/doc/install)"
  mkdir -p "$bin" "$cluster/logs"
  # A cluster may still run of the one before.
  find "$root/.cluster/bin" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn | tail -n +3 | cut -d' ' -f2- | xargs rm -rf --
  say "building Kubernetes (log: $cluster/logs/build.log)"
  "$root/scripts/cluster/build.sh" "$bin" >"$cluster/logs/build.log" 2>&1 9>&- ||
    { tail -n 20 "$cluster/logs/build.log" >&2; die "it cannot be built"; }
  touch "$bin/done"
}

# pack NAME writes the image notebox.test/NAME:1 of one program that needs nothing beside it.
pack() {
  local ref=notebox.test/$1:1
  if [ -e "$bin/$1.tar" ]; then return; fi
  tar -c -C "$bin" "$1" | docker import --change "ENTRYPOINT [\"/$1\"]" - "$ref" >/dev/null
  docker save -o "$bin/$1.tar.new" "$ref"
  docker rmi "$ref" >/dev/null
  mv "$bin/$1.tar.new" "$bin/$1.tar"
}

prepare() {
  local tool packages=()
  for tool in etcd:etcd-server containerd:containerd runc:runc ip:iproute2 nft:nftables iptables:iptables ipset:ipset sysctl:procps; do
    command -v "${tool%:*}" >/dev/null || packages+=("${tool#*:}")
  done
  [ -x /usr/lib/cni/bridge ] || packages+=(containernetworking-plugins)
  if [ ${#packages[@]} != 0 ]; then
    is_debian || die "missing: ${packages[*]} (install them, with the CNI plugins in /usr/lib/cni)"
    install "${packages[@]}"
  fi
  "$root/scripts/docker.sh"
  pack pause
  pack coredns
}

# --- the control plane -----------------------------------------------------------------------

# until_ok looks once a second, which is long for a part that starts in a tenth of it.
soon() {
  local end=$((SECONDS + until_ok_seconds)) said
  until said=$("$@" 2>&1); do
    if [ "$SECONDS" -ge "$end" ]; then
      printf '%s\n' "$said" >&2
      die "not within $until_ok_seconds s: $*"
    fi
    sleep 0.1
  done
}

start_etcd() {
  # What the tests write need not outlive a power cut.
  launch etcd etcd --data-dir "$cluster/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "http://$etcd" --advertise-client-urls "http://$etcd" \
    --listen-peer-urls "http://$etcd_peers" --initial-advertise-peer-urls "http://$etcd_peers" \
    --initial-cluster "default=http://$etcd_peers"
}

start_apiserver() {
  local pki=$cluster/pki
  # Debian's etcd cannot say how far a watch is, which this gate asks in vain.
  launch apiserver "$bin/cluster" apiserver --etcd-servers "http://$etcd" --feature-gates SizeBasedListCostEstimate=false \
    --bind-address "$api" --advertise-address "$api" --secure-port "$port" \
    --service-cluster-ip-range "$services.0.0/16" --allow-privileged \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --anonymous-auth=false \
    --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --kubelet-preferred-address-types InternalIP --kubelet-certificate-authority "$pki/ca.crt" \
    --kubelet-client-certificate "$pki/apiserver-kubelet.crt" --kubelet-client-key "$pki/apiserver-kubelet.key" \
    --requestheader-client-ca-file "$pki/ca.crt" --requestheader-allowed-names front-proxy-client \
    --requestheader-extra-headers-prefix X-Remote-Extra- --requestheader-group-headers X-Remote-Group \
    --requestheader-username-headers X-Remote-User --enable-aggregator-routing \
    --proxy-client-cert-file "$pki/front-proxy.crt" --proxy-client-key-file "$pki/front-proxy.key" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$pki/tokens.key" --service-account-signing-key-file "$pki/tokens.key"
}

start_controller-manager() {
  # A lost node is seen after 16 s, not 50, so that a test need not wait.
  launch controller-manager "$bin/cluster" controller-manager --kubeconfig "$cluster/pki/controller-manager.kubeconfig" \
    --secure-port 0 --use-service-account-credentials --leader-elect=false --node-monitor-grace-period 16s \
    --service-account-private-key-file "$cluster/pki/tokens.key" --root-ca-file "$cluster/pki/ca.crt"
}

start_scheduler() {
  launch scheduler "$bin/cluster" scheduler --kubeconfig "$cluster/pki/scheduler.kubeconfig" \
    --secure-port 0 --leader-elect=false
}

# --- the nodes -------------------------------------------------------------------------------

start_node() {
  local name=$1 controller
  mkdir -p "$cluster/$name/var"
  cat >"$cluster/$name/cni.conflist" <<EOF
{"cniVersion": "0.4.0", "name": "notebox", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods.$(number "$name").0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOF
  for controller in /sys/fs/cgroup/*/; do
    if [ -L "${controller%/}" ]; then continue; fi
    mkdir -p "$controller$cgroups/$name"
    if [ -e "$controller/cpuset.cpus" ]; then # a new group has none
      for file in cpuset.cpus cpuset.mems; do
        cat "$controller$file" >"$controller$cgroups/$file"
        cat "$controller$file" >"$controller$cgroups/$name/$file"
      done
    fi
  done
  rm -f "$cluster/run/$name.pid"
  NOTEBOX_CLUSTER=$cluster setsid --fork unshare --net --mount --pid --uts --ipc --fork \
    sh "$root/scripts/cluster/node.sh" "$name" "$cluster" "$bin" \
    >>"$cluster/logs/$name.log" 2>&1 </dev/null 9>&-
  soon pid_of "$name" >/dev/null
  connect "$name"
}

# connect NODE: a cable to the host, and one to each other node. The host's bridge has no part in
# it, so that its rules (Docker refuses to forward) do not see what nodes say to each other.
connect() {
  local name=$1 n other pid
  n=$(number "$name")
  ip link add "$(cable "$name")" type veth peer name eth0 netns "$(pid_of "$name")"
  ip addr add "$machines.$n.1/24" dev "$(cable "$name")"
  ip link set "$(cable "$name")" up
  ip route replace "$pods.$n.0/24" via "$machines.$n.2"
  ip route replace "$services.0.0/16" via "$machines.$n.2" metric "$n" # any node that is there
  in_node "$name" ip addr add "$machines.$n.2/24" dev eth0
  in_node "$name" ip link set eth0 up
  in_node "$name" ip route add default via "$machines.$n.1"
  for other in "${nodes[@]}"; do
    if [ "$other" = "$name" ] || ! pid=$(pid_of "$other"); then continue; fi
    ip link add eth1 netns "$(pid_of "$name")" type veth peer name eth1 netns "$pid"
    wire "$name" "$other"
    wire "$other" "$name"
  done
}

# wire NODE OTHER: its end of the cable to the other.
wire() {
  local n o
  n=$(number "$1") o=$(number "$2")
  in_node "$1" ip addr add "$machines.100.$n/24" dev eth1
  in_node "$1" ip link set eth1 up
  in_node "$1" ip route replace "$machines.$o.0/24" via "$machines.100.$o"
  in_node "$1" ip route replace "$pods.$o.0/24" via "$machines.100.$o"
}

# import NODE takes an archive of images.
import() { in_node "$1" ctr --namespace k8s.io images import - >>"$cluster/logs/$1-import.log" 2>&1; }

start_daemons() {
  local name=$1 inner=/run/notebox image
  launch_in "$name" containerd containerd --config "$inner/containerd.toml"
  soon in_node "$name" ctr version >/dev/null
  for image in pause coredns; do import "$name" <"$bin/$image.tar"; done
  launch_in "$name" kubelet "$inner-bin/cluster" kubelet --config "$inner/kubelet.yaml" \
    --hostname-override "$name" --node-ip "$(address "$name")" --kubeconfig "$inner/pki/$name.kubeconfig" \
    --tls-cert-file "$inner/pki/$name.crt" --tls-private-key-file "$inner/pki/$name.key" \
    --cgroup-root "/$cgroups/$name" --cluster-dns "$dns"
  # Of nf_conntrack, nothing is the node's own to set.
  launch_in "$name" proxy "$inner-bin/cluster" proxy --kubeconfig "$inner/pki/proxy.kubeconfig" \
    --hostname-override "$name" --proxy-mode nftables --cluster-cidr "$pods.0.0/16" --detect-local-mode ClusterCIDR \
    --conntrack-max-per-core 0 --conntrack-min 0 --oom-score-adj 0
  launch_in "$name" policies "$inner-bin/cluster" policies \
    --kubeconfig "$inner/pki/policies.kubeconfig" --node "$name" --services "$services.0.0/16"
}

# --- up and down -----------------------------------------------------------------------------

admin() { "$bin/cluster" kubectl --kubeconfig "$cluster/pki/admin.kubeconfig" "$@"; }

start() {
  if is_node "$1"; then
    pid_of "$1" >/dev/null || start_node "$1"
    start_daemons "$1"
  else
    pid_of "$1" >/dev/null || "start_$1"
  fi
}

# stop NAME: a node has its power cut, and so has a component, but etcd, which keeps what is in it.
stop() {
  local pid daemon end=$((SECONDS + stop_seconds))
  pid=$(pid_of "$1") || return 0
  if [ "$1" = etcd ]; then kill "$pid"; else kill -KILL "$pid"; fi
  while pid_of "$1" >/dev/null; do
    if [ "$SECONDS" -ge "$end" ]; then kill -KILL "$pid"; fi
    sleep 0.05
  done
  if ! is_node "$1"; then return; fi
  for daemon in containerd kubelet proxy policies; do
    while pid_of "$1-$daemon" >/dev/null; do sleep 0.05; done # these see that theirs died
  done
}

up() {
  local name addresses=()
  build
  prepare
  if [ ! -d "$cluster/run" ] && ip link show "$bridge" >/dev/null 2>&1; then
    die "cluster $which of this machine runs already, from another folder: CLUSTER=1 is another"
  fi
  mkdir -p "$cluster/run" "$cluster/logs"
  cp "$module/config/kubelet.yaml" "$module/config/containerd.toml" "$cluster/"
  [ -e "$cluster/sysctl" ] || sysctl "${sysctls[@]}" >"$cluster/sysctl"
  for name in "${nodes[@]}"; do addresses+=(--node "$name=$(address "$name")"); done
  "$bin/cluster" pki "$cluster/pki" --server "$api" --port "$port" --service-ip "$services.0.1" "${addresses[@]}"
  if ! ip link show "$bridge" >/dev/null 2>&1; then
    ip link add "$bridge" type bridge
    ip addr add "$api/32" dev "$bridge"
    ip link set "$bridge" up
  fi
  for name in "${control[@]}" "${nodes[@]}"; do start "$name"; done
  soon admin get --raw /readyz >/dev/null
  sed "s/DNS_ADDRESS/$dns/" "$module/config/coredns.yaml" >"$cluster/coredns.yaml"
  soon admin apply -f "$cluster/coredns.yaml" -f "$module/config/policies.yaml" >/dev/null
  status >/dev/null || { status; die "not all runs: see $cluster/logs"; }
  soon admin get "${nodes[@]/#/node/}" >/dev/null
  admin wait --for=condition=Ready --timeout=120s "${nodes[@]/#/node/}" >/dev/null
  admin -n kube-system rollout status --timeout=120s daemonset/coredns >/dev/null
  say "up: KUBECONFIG=$cluster/pki/admin.kubeconfig"
}

down() {
  local name pid controller
  for name in "${nodes[@]}" scheduler controller-manager apiserver etcd; do stop "$name"; done
  # What was started and has no pid file (a script that was interrupted).
  { grep -lsz "^NOTEBOX_CLUSTER=$cluster\$" /proc/[0-9]*/environ || true; } | cut -d/ -f3 | while read -r pid; do
    kill -KILL "$pid" 2>/dev/null || true
  done
  for name in "${nodes[@]}"; do
    ip link del "$(cable "$name")" 2>/dev/null || true # it goes with the node, some time
  done
  ip link del "$bridge" 2>/dev/null || true
  for controller in /sys/fs/cgroup/*/; do
    if [ -L "${controller%/}" ] || [ ! -d "$controller$cgroups" ]; then continue; fi
    soon rmdir_all "$controller$cgroups"
  done
  if [ -e "$cluster/sysctl" ]; then sysctl -q -p "$cluster/sysctl"; fi
  for name in "${nodes[@]}" etcd pki run sysctl kubelet.yaml containerd.toml coredns.yaml; do rm -rf -- "${cluster:?}/$name"; done
}

rmdir_all() { find "$1" -depth -type d -exec rmdir {} +; }

load() {
  local name ref id
  for ref; do
    id=$(docker image inspect --format '{{.Id}}' "$ref") || die "no such image: $ref"
    for name in "${nodes[@]}"; do
      grep -qsxF "$ref $id" "$cluster/$name/loaded" && continue
      docker save "$ref" | import "$name"
      echo "$ref $id" >>"$cluster/$name/loaded"
    done
  done
}

status() {
  local name result=0
  for name in "${control[@]}" "${nodes[@]}"; do
    if pid_of "$name" >/dev/null; then echo "$name runs"; else echo "$name does not run"; result=1; fi
  done
  return "$result"
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
  kubectl) admin "$@" ;;
  helm) KUBECONFIG=$cluster/pki/admin.kubeconfig "$bin/helm" "$@" ;;
  status) status ;;
  build) lock cluster-build; build ;;
  up | load | down | start | stop)
    if [ "$(id -u)" != 0 ]; then
      [ "$command" != up ] || build # not as root, whose Go may be another
      exec sudo -E "${BASH_SOURCE[0]}" "$command" "$@"
    fi
    lock "cluster-$which"
    "$command" "$@"
    ;;
  *) die "usage: $0 up|down|load IMAGE…|kubectl …|helm …|start X|stop X|status|build" ;;
esac
