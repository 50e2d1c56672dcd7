package cells

import (
	"os"
	"path/filepath"

	"notebox/environments/supervisor/wire"
)

// Tidy removes the control groups that a service's cells have left, as far as nothing is in them
// and this process may. What stands still there goes on before, so that it can end.
func Tidy(service string) {
	const all = "/sys/fs/cgroup"
	frozen, _ := filepath.Glob(filepath.Join(all, wire.Freezer, "notebox", service, "worker-*", "*", "freezer.state"))
	for _, file := range frozen {
		_ = os.WriteFile(file, []byte("THAWED"), 0)
	}
	for _, pattern := range []string{"*/notebox/" + service + "/worker-*/*-*", "*/notebox/" + service + "/worker-*", "*/notebox/" + service, "notebox/" + service} {
		groups, _ := filepath.Glob(filepath.Join(all, pattern))
		for _, group := range groups {
			_ = os.Remove(group)
		}
	}
}
