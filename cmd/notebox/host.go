package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// enoughFiles is more open files than all sandboxes of a large host have memory for: a file
// that is mapped is open, costs some 400 bytes of a sandbox's memory, and is in no other limit.
const enoughFiles = 1 << 40

// hostWarnings says which settings of this machine let one sandbox disturb others. proc is
// /proc. What cannot be read is as good as right: the Docker host may be another machine.
func hostWarnings(proc string) (out []string) {
	read := func(name string) string {
		raw, _ := os.ReadFile(filepath.Join(proc, "sys", name))
		return strings.TrimSpace(string(raw))
	}
	if most, err := strconv.ParseUint(read("fs/file-max"), 10, 64); err == nil && most < enoughFiles {
		out = append(out, "one sandbox can take all open files that this machine allows: sysctl fs.file-max=9223372036854775807 leaves their number to the limits of memory")
	}
	if strings.HasPrefix(read("kernel/core_pattern"), "@") {
		out = append(out, "crashes in sandboxes send their memory to the socket in kernel.core_pattern: let it be a file, or a program")
	}
	return out
}
