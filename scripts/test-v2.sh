#!/usr/bin/env bash
# Boots Debian's kernel, which has cgroup v2, in QEMU, and prints a line for each test there.
# With KVM these are the tests of the walls and limits of cells, with Docker, its two drivers of
# control groups, and an image of this tree; TESTS is another regular expression of their names.
# An emulated machine is too slow for that: it has the supervisor's own test of its groups.
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
machine=notebox/test-v2:$(sha256sum <"$root/scripts/v2/Dockerfile" | cut -c 1-16)
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

# What has /dev/kvm without these may still not run any kernel.
emulated=1
if grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then emulated=; fi

# The second one is an archive with the tests, the third one with the image: bash's, which is the
# smallest with the harness and a kernel that is Python.
work=$(mktemp -d -p "$cache")
trap 'rm -rf -- "$work"' EXIT
(cd "$root" && go test -c -o "$work/supervisor.test" ./environments/supervisor)
content=(-C "$work" supervisor.test -C "$root/scripts/v2" guest.sh)
if [ "$emulated" ]; then
  options=(-accel "tcg,thread=multi")
  begin=' init=/bin/sh -- -c "mount -t proc proc /proc; mkdir /test; tar -xf /dev/vdb -C /test; exec /test/guest.sh"'
else
  ref=$("$root/scripts/image.sh" bash)
  image=$cache/image-${ref##*:}.tar
  if [ ! -e "$image" ]; then
    rm -f "$cache"/image-*.tar
    docker save -o "$image.new" "$ref"
    mv "$image.new" "$image"
  fi
  options=(-accel kvm -drive "file=$image,if=virtio,format=raw,readonly=on")
  begin=
  printf '%s' "$tests" >"$work/tests"
  printf '%s' "$ref" >"$work/ref"
  (cd "$root" && go test -c -o "$work/cells.test" ./runner/cells)
  content+=(-C "$work" tests ref cells.test -C "$root" runner/cells/testdata runner/docker/testdata)
fi
tar -cf "$work/tests.tar" "${content[@]}"

say "booting, with ${options[1]} (log: $cache/log)"
timeout "$timeout_seconds" qemu-system-x86_64 -cpu max -smp 2 -m 4G -nographic -no-reboot -nic none \
  -kernel "$cache/vmlinuz" -initrd "$cache/initrd" -append "root=/dev/vda rw console=ttyS0 quiet panic=-1$begin" \
  -drive "file=$disk,if=virtio,format=raw,snapshot=on" \
  -drive "file=$work/tests.tar,if=virtio,format=raw,readonly=on" "${options[@]}" \
  </dev/null 2>&1 | sed -u 's/\r$//' | tee "$cache/log" |
  awk '/^DONE/ { done = 1 }
    /, driver / { driver = $NF; print > "/dev/stderr" }
    /^ *--- PASS: / { print driver "/" $3, "pass"; fflush() }
    /^ *--- FAIL: / { print driver "/" $3, "FAIL"; failed = 1 }
    END { exit failed || !done }' || { tail -n 100 "$cache/log" >&2; die "not all is as it should be"; }
