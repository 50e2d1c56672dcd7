package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"notebox/runner"
	"notebox/runner/docker"
)

// maxSkew is by how much two clocks may differ: more than a slow call makes it seem, and less
// than what a file's time or a link's end shows.
const maxSkew = 5 * time.Second

// OtherClock is a clock that this machine's is compared with.
type OtherClock struct {
	Of string // "the daemon's"
	// Read reads it.
	Read func(ctx context.Context) (Reading, error)
}

// Reading is what another clock says.
type Reading struct {
	Behind time.Duration // this machine's; below zero it is ahead
	Own    bool          // it is this machine's own, so that to compare them shows nothing
}

// Clock is the check of this machine's clock. made is when this program was, and no clock is
// right that says less; zero if nobody knows.
func Clock(made time.Time, others ...OtherClock) Check {
	return Check{Name: "clock", Look: func(ctx context.Context) Finding {
		if now := time.Now(); now.Before(made) {
			return wrong(mendClock, "this machine's clock says %s, and this program was made at %s", now.UTC().Format(time.RFC3339), made.UTC().Format(time.RFC3339))
		}
		var agree, off, silent, unasked []string
		alone := true
		for _, other := range others {
			read, err := other.Read(ctx)
			switch behind := read.Behind; {
			case errors.Is(err, errNoAddress):
				unasked = append(unasked, other.Of)
			case err != nil:
				silent = append(silent, other.Of+" ("+words(err)+")")
			case behind.Abs() > maxSkew:
				off = append(off, fmt.Sprintf("%s clock is %s %s this machine's", other.Of, behind.Abs().Round(time.Second), side(behind)))
			default:
				agree = append(agree, other.Of)
				alone = alone && read.Own
			}
		}
		switch {
		case len(off) > 0:
			return wrong(mendClock, "%s", strings.Join(off, "; "))
		case alone && len(silent) > 0:
			return Finding{Level: Skipped, Message: "compared with no other clock, as there is no answer: " + strings.Join(silent, ", "), Mend: "Mend that first."}
		case alone:
			why := "as all that was asked is on this machine"
			if len(unasked) > 0 {
				why += "; nothing tells the address of " + strings.Join(unasked, " and ")
			}
			return ok("this machine's clock says %s; there is no other to compare it with, %s", time.Now().UTC().Format(time.RFC3339), why)
		}
		return ok("this machine's clock agrees within %s with %s", maxSkew, strings.Join(agree, " and "))
	}}
}

// errNoAddress is of a clock that cannot be asked, though nothing is wrong.
var errNoAddress = errors.New("nothing tells its address")

const mendClock = "Set the one that is wrong by NTP (timedatectl set-ntp true); after a laptop's sleep, restart Docker Desktop's machine. Else links end at a wrong time, files have one, and a cloud refuses what is sent to it."

func side(behind time.Duration) string {
	if behind < 0 {
		return "ahead of"
	}
	return "behind"
}

// DaemonClock is the clock of a daemon's host.
func DaemonClock(d Daemon) OtherClock {
	return OtherClock{Of: "the daemon's", Read: func(ctx context.Context) (Reading, error) {
		about, err := d.About(ctx)
		if e := (*runner.Error)(nil); errors.As(err, &e) && e.Err != nil {
			err = e.Err
		}
		if err == nil && about.Clock.IsZero() {
			err = errors.New("it does not tell its time")
		}
		return Reading{Behind: about.Behind, Own: onThisHost(about)}, err
	}}
}

// onThisHost tells a daemon on this host from one in a machine of its own, as Docker Desktop's,
// whose folder is not here.
func onThisHost(a docker.About) bool {
	_, err := os.Stat(a.Folder)
	return err == nil && strings.HasPrefix(a.Address, "unix://")
}

// isOwn reports whether a host is this machine: its name stands for loopback or an address that
// an interface has.
func isOwn(ctx context.Context, host string) bool {
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(found, func(ip net.IPAddr) bool {
		return ip.IP.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			network, is := a.(*net.IPNet)
			return is && network.IP.Equal(ip.IP)
		})
	})
}

// WebClock is the clock of what answers at a URL, by the Date of its answer (RFC 9110, 6.6.1)
// and the Age that a cache has added (RFC 9111, 5.1).
func WebClock(of, address string) OtherClock {
	return OtherClock{Of: of, Read: func(ctx context.Context) (none Reading, err error) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return none, errors.New("it has no address")
		}
		// Without the query and the path: these may sign something, and the clock is the host's.
		root := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, root.String(), nil)
		if err != nil {
			return none, err
		}
		began := time.Now()
		res, err := http.DefaultTransport.RoundTrip(req) // follows nothing to elsewhere
		if err != nil {
			return none, err
		}
		res.Body.Close()
		said, err := http.ParseTime(res.Header.Get("Date"))
		if err != nil {
			return none, errors.New("its answer has no date")
		}
		if age, err := strconv.ParseUint(res.Header.Get("Age"), 10, 31); err == nil {
			said = said.Add(time.Duration(age) * time.Second)
		}
		middle := began.Add(time.Since(began) / 2)
		behind := middle.Sub(said.Add(time.Second / 2)) // a Date is without its fraction
		return Reading{Behind: behind, Own: isOwn(ctx, u.Hostname())}, nil
	}}
}
