#!/bin/sh
# Process 1 of a node of the test cluster, in namespaces of its own, until it is the holder of them:
#   node.sh NAME CLUSTER BIN
# /var and /run are the node's, CLUSTER is at /run/notebox, and BIN at /run/notebox-bin.
set -eu
name=$1 cluster=$2 bin=$3
read -r pid _ </proc/self/stat # as the host counts: this is still its /proc
mount --make-rshared / # volumes of pods may propagate
hostname "$name"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/notebox /run/notebox-bin /run/lock /run/cni
mount --bind "$cluster" /run/notebox
mount --bind "$bin" /run/notebox-bin
cd /run/notebox/"$name"/var
mkdir -p lib log tmp cache
[ -e run ] || ln -s /run run
rm -rf lib/cni # addresses of pods from before the node was lost
mount --bind /run/notebox/"$name"/var /var
mount -t proc proc /proc
echo 1 >/proc/sys/net/ipv4/ip_forward
# Rules also hold between pods of one node, which only the bridge connects.
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
ip link set lo up
cp "/run/notebox/$name/cni.conflist" /run/cni/
cd /
echo "$pid" >"/run/notebox/run/$name.pid"
exec /run/notebox-bin/pause
