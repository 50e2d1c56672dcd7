package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// State is the check of the folder of a service's own. Its lock is not touched: a service may
// have it.
func State(folder string) Check {
	return Check{Name: "state", Vital: true, Look: func(context.Context) Finding {
		mend := "Let this user write to it, or name another by --state-dir."
		there := nearest(folder)
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			return wrong(mend, "the state folder %s cannot be there: %s is no folder", folder, there)
		}
		file, err := os.CreateTemp(there, ".doctor-*")
		if err != nil {
			return wrong(mend, "the state folder %s cannot be written: %s", folder, words(err))
		}
		file.Close()
		if err := os.Remove(file.Name()); err != nil {
			return wrong(mend, "a file in the state folder %s cannot be removed: %s", folder, words(err))
		}
		if there != filepath.Clean(folder) {
			return ok("%s is not there yet; notebox serve makes it", folder)
		}
		return ok("%s can be written", folder)
	}}
}

// nearest is folder, or what is there above it.
func nearest(folder string) string {
	folder, err := filepath.Abs(folder)
	for err == nil {
		if _, missing := os.Lstat(folder); !errors.Is(missing, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

// Place is a folder that something grows in.
type Place struct{ Of, Folder string }

// Free space of a disk, in bytes.
const (
	// fullBelow is what a run's files need: 512 MiB come back, by default, and its records.
	fullBelow = 1 << 30
	// lowBelow is what building Python's image needs, with all that is downloaded.
	lowBelow = 8 << 30
)

// Disk is the check of the free space in folders of this host, and in the daemon's if that
// is here. Those that are not there count by what is above them; a folder of "" is of another
// host, and is passed over.
func Disk(d Daemon, places ...Place) Check {
	return Check{Name: "disk", Look: func(ctx context.Context) Finding {
		places := slices.Clone(places)
		if about, err := d.About(ctx); err == nil && strings.HasPrefix(about.Address, "unix://") {
			places = append(places, Place{Of: "images", Folder: about.Folder})
		}
		var free, low, full []string
		for _, p := range places {
			if p.Folder == "" {
				continue
			}
			var about unix.Statfs_t
			if err := unix.Statfs(nearest(p.Folder), &about); err != nil {
				continue
			}
			bytes := int64(about.Bavail) * int64(about.Bsize) //nolint:unconvert // its types differ by system
			text := fmt.Sprintf("%s free for %s (%s)", bytesOf(bytes), p.Of, p.Folder)
			switch {
			case bytes < fullBelow:
				full = append(full, text)
			case bytes < lowBelow:
				low = append(low, text)
			}
			free = append(free, text)
		}
		mend := "Remove what is not needed: notebox image prune, docker system prune, a shorter --retention; or move it to a larger disk."
		switch {
		case len(full) > 0:
			return wrong(mend, "%s", strings.Join(full, "; "))
		case len(low) > 0:
			return warning(mend, "%s", strings.Join(low, "; "))
		}
		return ok("%s", strings.Join(free, "; "))
	}}
}

// Port is the check of the address of --listen. refused is why serve would not take it, or
// nil.
func Port(address string, refused error) Check {
	return Check{Name: "port", Look: func(ctx context.Context) Finding {
		if refused != nil {
			return wrong("Set --api-keys-file, or listen on 127.0.0.1.", "%s", words(refused))
		}
		if host, port, err := net.SplitHostPort(address); err == nil && port != "0" && answers(ctx, host, port) {
			if isNotebox(ctx, host, port) {
				return ok("a notebox answers at %s", address)
			}
			return wrong("End what listens there (ss -ltnp names it), or choose another --listen.", "another program answers at %s", address)
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return wrong("End what listens there (ss -ltnp names it), or choose another --listen.", "%s is in use", address)
		case errors.Is(err, syscall.EACCES):
			return wrong("Choose a port above 1023, or put a proxy in front.", "this user may not listen on %s", address)
		case err != nil:
			return wrong("Choose an address of this machine: 127.0.0.1, 0.0.0.0 or one that ip addr shows.", "%s", words(err))
		}
		l.Close()
		return ok("%s is free", address)
	}}
}

// portWait bounds a look at a port of this machine, which answers at once.
const portWait = 2 * time.Second

func target(host, port string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

func answers(ctx context.Context, host, port string) bool {
	c, err := (&net.Dialer{Timeout: portWait}).DialContext(ctx, "tcp", target(host, port))
	if err == nil {
		c.Close()
	}
	return err == nil
}

func isNotebox(ctx context.Context, host, port string) bool {
	ctx, cancel := context.WithTimeout(ctx, portWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target(host, port)+"/v1/environments", nil)
	if err != nil {
		return false
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) // no proxy
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK || strings.Contains(res.Header.Get("WWW-Authenticate"), `realm="notebox"`)
}

// Settings is the check of what the flags and variables say. bad is why serve would refuse
// them, or nil; doubts are what it would log.
func Settings(bad error, doubts []string) Check {
	return Check{Name: "settings", Vital: true, Look: func(context.Context) Finding {
		switch {
		case bad != nil:
			return wrong("Correct the setting; notebox config says where it comes from.", "%s", words(bad))
		case len(doubts) > 0:
			return warning("Correct the name, or remove the variable.", "%s", strings.Join(doubts, "; "))
		}
		return ok("flags, variables and files can be read; notebox config prints them")
	}}
}

// Kernel is the check of settings of this host by which one sandbox disturbs others.
func Kernel(warnings []string) Check {
	return Check{Name: "kernel", Look: func(context.Context) Finding {
		if len(warnings) == 0 {
			return ok("no setting of this host's lets one sandbox disturb others")
		}
		return warning("Set what the message names; SECURITY.md says why.", "%s", strings.Join(warnings, "; "))
	}}
}
