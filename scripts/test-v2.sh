#!/usr/bin/env bash
# Boots Debian's kernel, which has cgroup v2, in QEMU, and prints a line for each test there: the
# supervisor's own of its groups, and those of the walls and limits of cells, with Docker, its two
# drivers of control groups, and an image of this tree. TESTS and DRIVERS are others of these:
# Engine and OrphansAreBuried take an emulated machine many minutes.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly tests=${TESTS:-RealProbe Limits Refusals Inside NothingIsCountedTogether}
readonly drivers=${DRIVERS:-systemd cgroupfs}
readonly cache=$root/.v2
readonly disk_size=4G # sparse: Debian, or the image
readonly timeout_seconds=3600

[ "$(uname -m)" = x86_64 ] || die "this machine is no x86_64"
for tool in qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs; do
  command -v "${tool%:*}" >/dev/null || install "${tool#*:}"
done
"$root/scripts/docker.sh"
lock test-v2
mkdir -p "$cache"
work=$(mktemp -d -p "$cache")
trap 'as_root rm -rf -- "$work"' EXIT

# The machine's first disk, with its kernel beside it.
machine=notebox/test-v2:$(sha256sum <"$root/scripts/v2/Dockerfile" | cut -c 1-16)
readonly machine disk=$cache/machine-${machine#*:}.img
if [ ! -e "$disk" ]; then
  "$root/scripts/base-image.sh"
  build_image "$root/scripts/v2/Dockerfile" "$root/scripts/v2" "$machine"
  rm -f "$cache"/*.img
  mkdir "$work/tree"
  container=$(docker create "$machine")
  docker export "$container" | as_root tar -x -C "$work/tree"
  docker rm "$container" >/dev/null
  as_root rm "$work/tree/.dockerenv" # or systemd takes the machine for a container
  as_root cp "$work"/tree/boot/vmlinuz-* "$cache/vmlinuz"
  as_root cp "$work"/tree/boot/initrd.img-* "$cache/initrd"
  as_root mke2fs -q -t ext4 -d "$work/tree" "$work/disk" "$disk_size" >/dev/null
  mv "$work/disk" "$disk"
fi

# The third one is its Docker's folder with an image, as an emulated machine takes minutes to load
# one: bash's, which is the smallest with the harness and a kernel that is Python. The machine's
# own daemon makes it here.
ref=$("$root/scripts/image.sh" bash)
readonly ref image=$cache/image-${ref##*:}.img
if [ ! -e "$image" ]; then
  rm -f "$cache"/image-*.img
  mkdir "$work/docker"
  docker save "$ref" | docker run --rm -i --network none --cap-add SYS_ADMIN \
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
    --volume "$work/docker:/var/lib/docker" --volume "$root/scripts/v2/load.sh:/load.sh:ro" \
    "$machine" timeout 300 sh /load.sh >&2
  as_root mke2fs -q -t ext4 -d "$work/docker" "$work/disk" "$disk_size" >/dev/null
  mv "$work/disk" "$image"
fi

# The second one is an archive with the tests.
(cd "$root" && go test -c -o "$work/supervisor.test" ./environments/supervisor && go test -c -o "$work/cells.test" ./runner/cells)
echo "$tests" >"$work/tests"
echo "$drivers" >"$work/drivers"
echo "$ref" >"$work/ref"
tar -cf "$work/tests.tar" -C "$work" tests drivers ref supervisor.test cells.test \
  -C "$root/scripts/v2" guest.sh -C "$root" runner/cells/testdata runner/docker/testdata

# What has /dev/kvm without these may still not run any kernel.
options=(-accel "tcg,thread=multi")
if grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then options=(-accel kvm); fi

# On a busy host an emulated timer fails the kernel's check of it: no_timer_check.
say "booting, with ${options[1]} (log: $cache/log)"
timeout "$timeout_seconds" qemu-system-x86_64 "${options[@]}" -cpu max -smp 2 -m 4G -nographic -no-reboot -nic none \
  -kernel "$cache/vmlinuz" -initrd "$cache/initrd" \
  -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 no_timer_check systemd.unit=test.service systemd.show_status=0" \
  -drive "file=$disk,if=virtio,format=raw,snapshot=on" \
  -drive "file=$work/tests.tar,if=virtio,format=raw,readonly=on" \
  -drive "file=$image,if=virtio,format=raw,snapshot=on" \
  </dev/null 2>&1 | sed -u 's/\r$//' | tee "$cache/log" | grep --line-buffered -E '^ *--- |, driver ' || true
grep -q '^DONE' "$cache/log" || { tail -n 100 "$cache/log" >&2; die "not all is as it should be"; }
