package storagetest

import "syscall"

// group lets a server be killed with what it starts, and die with a test's program that
// is killed itself.
func group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
