#!/bin/sh
# In the machine of test-v2.sh: runs the supervisor's own test of its groups, and the tests of
# cells in Docker, with either driver of control groups.
set -eu
export HOME=/root NOTEBOX_TEST_DELEGATED=1 NOTEBOX_TEST_SLOWER=5 NOTEBOX_TEST_IMAGE
NOTEBOX_TEST_IMAGE=$(cat /test/ref)
drivers=$(cat /test/drivers)
tests=$(cat /test/tests)
result=DONE
echo
echo "$(uname -r), driver supervisor"
systemd-run -q --scope -p Delegate=yes /test/supervisor.test -test.v -test.run '^TestUnified$' || result=FAILED
mkdir -p /var/lib/docker /etc/docker
mount /dev/vdc /var/lib/docker
cd /test/runner/cells
for driver in $drivers; do
  echo "{\"bridge\": \"none\", \"iptables\": false, \"ip6tables\": false, \"exec-opts\": [\"native.cgroupdriver=$driver\"]}" >/etc/docker/daemon.json
  systemctl restart docker
  docker info --format '{{.ServerVersion}}, cgroup v{{.CgroupVersion}}, driver {{.CgroupDriver}}'
  for test in $tests; do
    /test/cells.test -test.v -test.parallel 1 -test.run "^Test$test\$" || result=FAILED
  done
done
echo "$result"
