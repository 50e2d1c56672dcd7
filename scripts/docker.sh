#!/usr/bin/env bash
# Makes sure that a Docker daemon answers. One that is there is left as it is; where
# there is none, Debian's is installed and started in the background, to stay.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly daemon_log=/var/log/notebox-dockerd.log
readonly pidfile=/run/notebox-dockerd.pid
readonly deadline_seconds=60 # a first start on a slow disk takes about ten

if command -v docker >/dev/null && docker_answers; then
  exit 0
fi
[ -z "${DOCKER_HOST:-}" ] || die "no Docker daemon answers at DOCKER_HOST=$DOCKER_HOST"
lock docker
if command -v docker >/dev/null && docker_answers; then # started while we waited
  exit 0
fi
# A daemon that this user may not talk to is somebody's; a second one would break it.
if [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; then
  die "/var/run/docker.sock is not yours to use: join its group (sudo usermod -aG docker $(id -un)) and log in again"
fi
# Nor is one that runs and does not answer ours to replace.
if grep -qsx dockerd /proc/[0-9]*/comm; then
  die "a dockerd runs, and does not answer: look at its log, or set DOCKER_HOST to where it listens"
fi
if ! command -v dockerd >/dev/null; then
  if ! is_debian || ! can_be_root; then
    die "no Docker daemon answers: install Docker (https://docs.docker.com/engine/install/) and start it"
  fi
  packages=(docker.io)
  apt_get update -qq # or apt-cache knows nothing on a fresh machine
  # Newer releases have the client and BuildKit in packages of their own.
  for extra in docker-cli docker-buildx; do
    if apt-cache show "$extra" >/dev/null 2>&1; then packages+=("$extra"); fi
  done
  # Where the kernel enforces AppArmor, dockerd needs its parser.
  if [ -e /sys/module/apparmor ]; then packages+=(apparmor); fi
  install "${packages[@]}"
fi

if [ -d /run/systemd/system ]; then
  say "starting docker.service"
  as_root systemctl start docker
elif ! docker_answers; then
  say "starting dockerd (log: $daemon_log)"
  # A session of its own and no inherited descriptor: it outlives the calling make, is
  # not reached by ctrl-C, and holds neither our output nor our lock.
  # Its socket belongs to whoever calls this, who may be no member of a docker group yet.
  group=docker
  [ "$(id -u)" = 0 ] || group=$(id -gn)
  # shellcheck disable=SC2016  # expanded by the inner shell
  as_root sh -c 'exec setsid --fork nohup dockerd --pidfile "$2" --group "$3" >>"$1" 2>&1 </dev/null 9>&-' \
    sh "$daemon_log" "$pidfile" "$group"
fi
until docker_answers; do
  if [ "$SECONDS" -ge "$deadline_seconds" ]; then
    tail -n 20 "$daemon_log" >&2 2>/dev/null || true
    die "dockerd did not answer within $deadline_seconds s"
  fi
  sleep 0.3
done
