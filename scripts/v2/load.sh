#!/bin/sh
# In a container of the machine's image, for test-v2.sh: loads an image into /var/lib/docker.
set -eu
dockerd --bridge none --iptables=false --ip6tables=false >/log 2>&1 &
daemon=$!
until docker version >/dev/null 2>&1; do
  kill -0 "$daemon" || { cat /log; exit 1; }
  sleep 0.2
done
docker load
kill "$daemon"
wait "$daemon"
