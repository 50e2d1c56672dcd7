package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

const (
	dialTime      = 10 * time.Second // for one address
	dialAddresses = 4                // of a name that has many; two of each family
)

// azureMetadata is a cloud's metadata service at an address that is public by
// its number; those of the other clouds are in link-local, private or shared
// ranges.
var azureMetadata = netip.MustParsePrefix("168.63.129.16/32")

// resolver is the part of net.Resolver that a fetcher needs.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// addressGuard decides which addresses may be fetched from: public unicast ones
// by IANA's registries, and those that the operator allows.
type addressGuard struct {
	public *ssrf.Guardian
	rules  []allowRule
	own    func() ([]net.Addr, error) // the addresses of this machine
}

// allowRule is one entry of Config.FetchAllow.
type allowRule struct {
	host   string       // a name or an address, lower case; empty for a prefix
	port   uint16       // 0: every port
	prefix netip.Prefix // where host is empty
}

func newAddressGuard(allow []string) (*addressGuard, error) {
	g := &addressGuard{
		public: ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureMetadata)),
		own:    net.InterfaceAddrs,
	}
	for _, entry := range allow {
		rule, err := parseFetchAllow(entry)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, rule)
	}
	return g, nil
}

// parseFetchAllow reads "host", "host:port" or a CIDR prefix. A host is a name
// or an address and is compared with what stands in the URL, whatever a name
// resolves to; a prefix is compared with the address that is connected to.
// There are no wildcards.
func parseFetchAllow(entry string) (allowRule, error) {
	bad := fmt.Errorf("fetch-allow %q: it must be a host, host:port or an address range like 10.1.0.0/16", entry)
	if strings.Contains(entry, "/") {
		prefix, err := netip.ParsePrefix(entry)
		if err != nil {
			return allowRule{}, bad
		}
		return allowRule{prefix: prefix.Masked()}, nil
	}
	rule := allowRule{host: hostname(entry)}
	if host, port, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return allowRule{}, bad
		}
		rule.host, rule.port = hostname(host), uint16(n)
	}
	_, err := netip.ParseAddr(rule.host)
	if rule.host == "" || err != nil && strings.ContainsAny(rule.host, "*? :@,[]") {
		return allowRule{}, bad
	}
	return rule, nil
}

// trusts reports whether the operator named this host.
func (g *addressGuard) trusts(host string, port uint16) bool {
	host = strings.TrimSuffix(hostname(host), ".")
	return slices.ContainsFunc(g.rules, func(r allowRule) bool {
		return r.host != "" && r.host == host && (r.port == 0 || r.port == port)
	})
}

// check refuses an address. It is asked for the one that a socket is about to
// connect to, so that what a name resolves to at another time does not matter.
func (g *addressGuard) check(address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return errFetchAddress
	}
	ip := target.Addr().Unmap()
	if slices.ContainsFunc(g.rules, func(r allowRule) bool { return r.host == "" && r.prefix.Contains(ip) }) {
		return nil
	}
	if ip.Zone() != "" {
		return errFetchAddress
	}
	if ssrf.IPv6NAT64Prefix.Contains(ip) { // RFC 6052: the last four bytes are the address
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	if g.public.SafeAddr(ip) != nil || g.isOwn(ip) {
		return errFetchAddress
	}
	return nil
}

// isOwn reports whether ip is this machine: services that listen on its public
// address may be meant for it alone.
func (g *addressGuard) isOwn(ip netip.Addr) bool {
	addrs, err := g.own()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

// dial resolves once and connects to one of the addresses that were found, each
// of which is checked when its socket is there.
func (f *fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs, err := f.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTime}
	if !f.guard.trusts(host, uint16(port)) {
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return f.guard.check(address)
		}
	}
	for _, ip := range addrs {
		conn, dialErr := dialer.DialContext(ctx, network, netip.AddrPortFrom(ip, uint16(port)).String())
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, err
}

func (f *fetcher) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	addrs, err := f.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFetchHost, err)
	}
	if len(addrs) == 0 {
		return nil, errFetchHost
	}
	return addrs[:min(len(addrs), dialAddresses)], nil
}
