#!/bin/sh
# In the machine of test-v2.sh: runs the supervisor's own test, and then those of cells in
# Docker with either driver of control groups.
set -eu
uname -rv
findmnt -no FSTYPE,OPTIONS /sys/fs/cgroup
echo "supervisor, driver none"
systemd-run --quiet --scope -p Delegate=yes env NOTEBOX_TEST_DELEGATED=1 /test/supervisor.test -test.v -test.run '^TestUnified$' || true
docker load -q </dev/vdc
cd /test/runner/cells
for driver in systemd cgroupfs; do
  sed "s/^{/{\"exec-opts\": [\"native.cgroupdriver=$driver\"], /" -i.before /etc/docker/daemon.json
  systemctl reset-failed docker
  systemctl restart docker
  mv /etc/docker/daemon.json.before /etc/docker/daemon.json
  docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, driver {{.CgroupDriver}}'
  NOTEBOX_TEST_IMAGE=$(cat /test/ref) HOME=/root /test/cells.test -test.v -test.run "$(cat /test/tests)" || true
  echo "DONE $driver"
done
