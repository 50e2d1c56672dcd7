package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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
		if whole, err := filepath.Abs(folder); err != nil || there != whole {
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

// maxAnswer bounds what is read of an answer, bytes: a list of environments has some kilobytes.
const maxAnswer = 1 << 20

// isNotebox tells a notebox by its list of environments, or by how it refuses who has no key.
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
	if res.StatusCode == http.StatusUnauthorized {
		return strings.Contains(res.Header.Get("WWW-Authenticate"), `realm="notebox"`)
	}
	var answer struct {
		Environments []struct{ Name, Kernel string }
		Limits       map[string]any
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer)
	return err == nil && len(answer.Environments) > 0 && answer.Environments[0].Kernel != "" && answer.Limits != nil
}

// Settings is the check of what the flags and variables say. bad is why serve would refuse
// them; doubts are what it would log.
func Settings(bad []error, doubts []string) Check {
	return Check{Name: NameSettings, Vital: true, Look: func(context.Context) Finding {
		switch {
		case len(bad) > 0:
			return wrong("Correct the setting in the place that the message names; notebox serve -h lists what can be set.", "%s", words(errors.Join(bad...)))
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
		return warning("Set what the message names.", "%s", strings.Join(warnings, "; "))
	}}
}
