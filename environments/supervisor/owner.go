package main

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// owner is the user that the zygote's user namespace belongs to, outside of it. The kernel
// counts for it what it counts for all users of the namespace together (inotify, message
// queues, signals that wait), so it is nobody else: not root, which the host's own services
// are. A process with this id has every capability in the namespace.
type owner struct{ id int }

// capabilities of the supervisor, of linux/capability.h.
const setgid, setuid = 1 << 6, 1 << 7

// do calls f on a thread that has the owner's id, and keeps its two capabilities. Files are
// root's as before.
func (o owner) do(f func() error) (err error) {
	runtime.LockOSThread()
	if err := o.take(); err != nil {
		return fmt.Errorf("take the owner's id: %w", err) // with a thread that ends
	}
	defer func() {
		// From another id to root's the kernel gives the capabilities back.
		if back := setEffective(0); back != nil {
			err = errors.Join(err, back)
			return
		}
		runtime.UnlockOSThread()
	}()
	return f()
}

func (o owner) take() error {
	if err := setEffective(o.id); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: setgid | setuid, Permitted: setgid | setuid}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	_, err := unix.SetfsuidRetUid(0)
	return err
}

// setEffective changes the effective id of this thread alone, which package syscall does not.
func setEffective(id int) error {
	const same = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(id), same); errno != 0 {
		return errno
	}
	return nil
}
