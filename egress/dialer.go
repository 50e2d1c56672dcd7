package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// ErrHost is why a name is not connected to: it is at no address.
var ErrHost = errors.New("host not found")

const (
	dialTime      = 10 * time.Second // for one address
	dialAddresses = 4                // of a name that has many, in the order in which they are worth trying
)

// Resolver is the part of net.Resolver that a Dialer needs.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer connects to what its Guard lets pass.
type Dialer struct {
	Guard    *Guard
	Resolver Resolver // nil: net.DefaultResolver
	// Refuse names addresses that not even an exception opens; may be nil.
	Refuse func(netip.AddrPort) bool
}

// DialContext resolves once and connects to one of the addresses that were found,
// each of which is checked when its socket is there. If the Guard refuses,
// the error is ErrAddress; if there is no such name, ErrHost.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	trusted := d.Guard.Trusts(host, uint16(port))
	dialer := &net.Dialer{Timeout: dialTime, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return d.check(address, trusted)
	}}
	for _, ip := range addrs {
		target := netip.AddrPortFrom(ip, uint16(port)).String()
		// Once before, since there may be no socket for a family that this host lacks.
		dialErr := d.check(target, trusted)
		var conn net.Conn
		if dialErr == nil {
			conn, dialErr = dialer.DialContext(ctx, network, target)
		}
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, err
}

func (d *Dialer) check(address string, trusted bool) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || d.Refuse != nil && d.Refuse(target) {
		return ErrAddress
	}
	if trusted {
		return nil
	}
	return d.Guard.Check(target.Addr())
}

func (d *Dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	addrs, err := cmp.Or[Resolver](d.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHost, err)
	}
	if len(addrs) == 0 {
		return nil, ErrHost
	}
	return addrs[:min(len(addrs), dialAddresses)], nil
}
