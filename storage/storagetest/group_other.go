//go:build !linux

package storagetest

import "syscall"

// group lets a server be killed with what it starts.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
