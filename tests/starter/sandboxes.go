package starter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupsFolder has the host's control groups.
const groupsFolder = "/sys/fs/cgroup/"

// Containers lists what a service has on the machine's daemon, running or not: sandboxes, and
// workers with cells in them. format is docker's, for what is told of each: "{{.ID}}" or
// "{{.Names}}".
func Containers(ctx context.Context, service, format string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--no-trunc", "--filter", "label=notebox.service="+service, "--format", format).Output()
	if err != nil {
		return nil, fmt.Errorf("docker ps: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// Sandboxes lists what the runs and sessions of a service have: the names of containers that are
// no worker's, and Cells.
func Sandboxes(ctx context.Context, service string) ([]string, error) {
	all, err := Containers(ctx, service, `{{.Names}}/{{.Label "notebox.users"}}`)
	out := Cells(service)
	for _, one := range all {
		if name, users, _ := strings.Cut(one, "/"); users == "" {
			out = append(out, name)
		}
	}
	return out, err
}

// Cells lists the cells of a service that have processes, by their control groups, as SandboxOf
// names them. The last part of a name is "cell-" or "session-" with a number.
func Cells(service string) (out []string) {
	for _, path := range Groups(service) {
		name := cellName.FindString(path)
		if name == "" || len(processesOf(path)) == 0 {
			continue
		}
		if _, err := syscall.Getxattr(path, "user.notebox.session", nil); err == nil { // version 2
			name = strings.Replace(name, "/cell-", "/session-", 1)
		}
		out = append(out, name)
	}
	return out
}

// Groups lists the control groups of the workers and cells of a service, those of the controller
// of memory if there are several trees.
func Groups(service string) (out []string) {
	for _, folder := range []string{
		"memory/notebox/" + service + "/worker-*", // version 1, then 2 with either of Docker's drivers
		"notebox/" + service + "/*",
		"notebox.slice/notebox-" + strings.ReplaceAll(service, "-", "_") + ".slice/*",
	} {
		for _, path := range []string{folder, folder + "/*"} {
			found, _ := filepath.Glob(groupsFolder + path + "/cgroup.procs")
			for _, file := range found {
				out = append(out, filepath.Dir(file))
			}
		}
	}
	return out
}

// processesOf are those in a control group.
func processesOf(folder string) []string {
	raw, _ := os.ReadFile(folder + "/cgroup.procs") // it may have been removed
	return strings.Fields(string(raw))
}

// cellName and containerID are found in the paths of control groups.
var (
	cellName    = regexp.MustCompile(`notebox[^:\n]*/(cell|session)-\d+`)
	containerID = regexp.MustCompile(`[0-9a-f]{64}`)
)

// SandboxOf is the cell or the container, by its ID, that a process is in: "" if in none.
// folder is the process's in /proc.
func SandboxOf(folder string) string {
	raw, _ := os.ReadFile(folder + "/cgroup")
	return sandboxOf(string(raw))
}

// sandboxOf reads what proc_pid_cgroup(5) describes. On version 1 a cell has groups of its own of
// some controllers, and its worker's container of the others.
func sandboxOf(groups string) string {
	if cell := cellName.FindString(groups); cell != "" {
		return cell
	}
	return containerID.FindString(groups)
}

// IsCell tells a cell's name from a container's.
func IsCell(sandbox string) bool { return strings.Contains(sandbox, "/") }

// IsCellOf reports whether a sandbox is a cell of that service.
func IsCellOf(sandbox, service string) bool {
	return strings.HasPrefix(sandbox, "notebox/"+service+"/") ||
		strings.HasPrefix(sandbox, "notebox.slice/notebox-"+strings.ReplaceAll(service, "-", "_")+".slice/")
}

// Kill ends a sandbox from outside.
func Kill(ctx context.Context, sandbox string) error {
	if !IsCell(sandbox) {
		return exec.CommandContext(ctx, "docker", "rm", "--force", sandbox).Run()
	}
	folders := []string{"memory/" + sandbox, sandbox, strings.Replace(sandbox, "/session-", "/cell-", 1)}
	for killed := 0; ; {
		there := 0
		for _, folder := range folders {
			for _, process := range processesOf(groupsFolder + folder) {
				if pid, err := strconv.Atoi(process); err == nil {
					_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
					there++
				}
			}
		}
		switch killed += there; {
		case killed == 0:
			return fmt.Errorf("there is no cell %s", sandbox)
		case there == 0 || ctx.Err() != nil:
			return ctx.Err()
		}
		time.Sleep(lookEvery)
	}
}
