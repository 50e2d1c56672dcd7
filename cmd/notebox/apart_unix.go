//go:build unix

package main

import "syscall"

// apart has a process outlive its parent's terminal and group.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
