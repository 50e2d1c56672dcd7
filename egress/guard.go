package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
)

// ErrAddress is why an address is not connected to.
var ErrAddress = errors.New("not at an address that may be reached")

// azureMetadata is a cloud's metadata service at an address that is public by
// its number; those of the other clouds are in link-local, private or shared
// ranges.
var azureMetadata = netip.MustParsePrefix("168.63.129.16/32")

// Guard decides which addresses may be connected to: public unicast ones by
// IANA's registries, and those that the operator excepts.
type Guard struct {
	public *ssrf.Guardian
	rules  []exception
	own    func() ([]net.Addr, error) // the addresses of this machine
}

// exception is one entry of what NewGuard is given.
type exception struct {
	host   string       // a name or an address, lower case; empty for a prefix
	port   uint16       // 0: every port
	prefix netip.Prefix // if host is empty
}

// NewGuard takes the operator's exceptions, each "host", "host:port" or an address
// range like 10.1.0.0/16. A host is a name or an address and is compared with
// what was asked for, whatever a name resolves to; a range is compared with the
// address that is connected to. There are no wildcards.
func NewGuard(exceptions []string) (*Guard, error) {
	g := &Guard{
		public: ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(azureMetadata)),
		own:    net.InterfaceAddrs,
	}
	for _, entry := range exceptions {
		rule, err := parseException(entry)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, rule)
	}
	return g, nil
}

func parseException(entry string) (exception, error) {
	bad := fmt.Errorf("%q: it must be a host, host:port or an address range like 10.1.0.0/16", entry)
	if strings.Contains(entry, "/") {
		prefix, err := netip.ParsePrefix(entry)
		if err != nil {
			return exception{}, bad
		}
		return exception{prefix: prefix.Masked()}, nil
	}
	host, port, err := splitHost(entry)
	if err != nil || strings.Contains(host, "*") {
		return exception{}, bad
	}
	return exception{host: host, port: port}, nil
}

// splitHost reads "host", "host:port", "[v6]" or "[v6]:port" of a setting; port
// is 0 if there is none.
func splitHost(entry string) (host string, port uint16, err error) {
	host = bare(entry)
	if h, p, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("%q has no such port", entry)
		}
		host, port = bare(h), uint16(n)
	}
	if _, err := netip.ParseAddr(host); host == "" || err != nil && strings.ContainsAny(host, "? :@,[]/") {
		return "", 0, fmt.Errorf("%q is no host", entry)
	}
	return host, port, nil
}

// bare is how hosts are compared: lower case, without the brackets of an IPv6
// address and the dot at the end of a name.
func bare(host string) string {
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Trusts reports whether the operator excepted this host, as it was asked for.
func (g *Guard) Trusts(host string, port uint16) bool {
	host = bare(host)
	return slices.ContainsFunc(g.rules, func(r exception) bool {
		return r.host != "" && r.host == host && (r.port == 0 || r.port == port)
	})
}

// Check refuses an address with ErrAddress. It is to be asked for the one that a
// socket is about to connect to, so that what a name resolves to at another time
// does not matter.
func (g *Guard) Check(ip netip.Addr) error {
	ip = ip.Unmap()
	if slices.ContainsFunc(g.rules, func(r exception) bool { return r.host == "" && r.prefix.Contains(ip) }) {
		return nil
	}
	if ip.Zone() != "" {
		return ErrAddress
	}
	ip = plain(ip)
	if g.public.SafeAddr(ip) != nil || g.IsOwn(ip) {
		return ErrAddress
	}
	return nil
}

// plain is the address that one stands for: an IPv4 one that is mapped or, by RFC 6052,
// translated into IPv6.
func plain(ip netip.Addr) netip.Addr {
	if ip = ip.Unmap(); ssrf.IPv6NAT64Prefix.Contains(ip) {
		b := ip.As16() // the last four bytes are the address
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

// IsOwn reports whether ip is this machine: services that listen on its public
// address may be meant for it alone.
func (g *Guard) IsOwn(ip netip.Addr) bool {
	ip = plain(ip).WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, err := g.own()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}
