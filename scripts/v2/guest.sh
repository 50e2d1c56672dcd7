#!/bin/sh
# In the machine of test-v2.sh: runs the supervisor's own test as the first process, or, with
# systemd, the tests of cells in Docker, with either driver of control groups.
set -eu
export NOTEBOX_TEST_DELEGATED=1 HOME=/root
if [ $$ = 1 ]; then
  mount -t sysfs sysfs /sys
  mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/notebox/container
  for group in /sys/fs/cgroup /sys/fs/cgroup/notebox; do
    echo "+cpu +memory +pids" >"$group/cgroup.subtree_control"
  done
  echo
  echo "$(uname -r), driver supervisor"
  sh -c 'echo 0 >/sys/fs/cgroup/notebox/container/cgroup.procs; exec /test/supervisor.test -test.v -test.run "^TestUnified$"' || true
  echo DONE
  echo o >/proc/sysrq-trigger
  exec sleep 60
fi
uname -r
docker load -q </dev/vdc
cd /test/runner/cells
for driver in systemd cgroupfs; do
  sed "s/^{/{\"exec-opts\": [\"native.cgroupdriver=$driver\"], /" -i.before /etc/docker/daemon.json
  systemctl reset-failed docker
  systemctl restart docker
  mv /etc/docker/daemon.json.before /etc/docker/daemon.json
  docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, driver {{.CgroupDriver}}'
  NOTEBOX_TEST_IMAGE=$(cat /test/ref) /test/cells.test -test.v -test.run "$(cat /test/tests)" || true
done
echo DONE
