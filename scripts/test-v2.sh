#!/usr/bin/env bash
# Boots Debian's kernel, which has cgroup v2, in QEMU, and runs the tests of the walls and
# limits of cells there: with Docker, its two drivers of control groups, and an image of this
# tree. A line for each that passed. TESTS is another regular expression of their names.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly tests=${TESTS:-^Test(Limits|Inside|Refusals|NothingIsCountedTogether|OrphansAreBuried|Engine)$}
readonly cache=$root/.v2
readonly disk_size=4G # sparse: Debian, and the image
readonly timeout_seconds=1800

[ "$(uname -m)" = x86_64 ] || die "this machine is no x86_64"
for tool in qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs; do
  command -v "${tool%:*}" >/dev/null || install "${tool#*:}"
done
"$root/scripts/docker.sh"
lock test-v2
mkdir -p "$cache"

# The machine's first disk, with its kernel beside it.
machine=notebox/test-v2:$(cat "$root/scripts/v2/Dockerfile" | sha256sum | cut -c 1-16)
readonly machine disk=$cache/${machine#*:}.img
if [ ! -e "$disk" ]; then
  "$root/scripts/base-image.sh"
  build_image "$root/scripts/v2/Dockerfile" "$root/scripts/v2" "$machine"
  rm -rf "$cache"/*.img "$cache"/tree
  mkdir "$cache/tree"
  container=$(docker create "$machine")
  docker export "$container" | as_root tar -x -C "$cache/tree"
  docker rm "$container" >/dev/null
  as_root cp "$cache"/tree/boot/vmlinuz-* "$cache/vmlinuz"
  as_root cp "$cache"/tree/boot/initrd.img-* "$cache/initrd"
  as_root mke2fs -q -t ext4 -d "$cache/tree" "$disk.new" "$disk_size"
  as_root rm -rf "$cache/tree"
  mv "$disk.new" "$disk"
fi

# The second one is an archive with the tests, the third one with the image.
# It is bash's, which is the smallest that has the harness, and a kernel that is Python.
ref=$("$root/scripts/image.sh" bash)
readonly ref image=$cache/image-${ref##*:}.tar
if [ ! -e "$image" ]; then
  rm -f "$cache"/image-*.tar
  docker save -o "$image.new" "$ref"
  mv "$image.new" "$image"
fi
work=$(mktemp -d -p "$cache")
trap 'rm -rf -- "$work"' EXIT
printf '%s' "$tests" >"$work/tests"
printf '%s' "$ref" >"$work/ref"
(cd "$root" && go test -c -o "$work/cells.test" ./runner/cells && go test -c -o "$work/supervisor.test" ./environments/supervisor)
tar -cf "$work/tests.tar" -C "$work" tests ref cells.test supervisor.test -C "$root/scripts/v2" guest.sh -C "$root" runner/cells/testdata runner/docker/testdata

# What has /dev/kvm without these may still not run any kernel.
accel=tcg,thread=multi
if grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then accel=kvm; fi
say "booting, with $accel (log: $cache/log)"
timeout "$timeout_seconds" qemu-system-x86_64 -accel "$accel" -cpu max -smp 2 -m 4G -nographic -no-reboot -nic none \
  -kernel "$cache/vmlinuz" -initrd "$cache/initrd" -append 'root=/dev/vda rw console=ttyS0 quiet' \
  -drive "file=$disk,if=virtio,format=raw,snapshot=on" \
  -drive "file=$work/tests.tar,if=virtio,format=raw,readonly=on" \
  -drive "file=$image,if=virtio,format=raw,readonly=on" \
  </dev/null 2>&1 | sed -u 's/\r$//' | tee "$cache/log" |
  awk '/^DONE / { done++ }
    /, driver / { driver = $NF; print > "/dev/stderr" }
    /^ *--- PASS: / { print driver "/" $3, "pass"; fflush() }
    /^ *--- FAIL: / { print driver "/" $3, "FAIL"; failed = 1 }
    END { exit failed || done < 2 }' || { tail -n 100 "$cache/log" >&2; die "not all is as it should be"; }
