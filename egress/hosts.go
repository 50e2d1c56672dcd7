package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Hosts are the destinations that the operator allows, by what a request asks for.
type Hosts []hostRule

// hostRule is one entry.
type hostRule struct {
	host string // "*", a suffix with its dot for *.name, a name, or an address in its one form
	port uint16 // 0: 80 and 443
	kind ruleKind
}

type ruleKind int

const (
	ruleExact ruleKind = iota
	ruleBelow          // the names below one
	ruleAny
)

// ParseHosts reads entries of the form HOST or HOST:PORT. HOST is a name, an address
// ([v6] in brackets if a port follows), *.name for all names below that one, but not
// itself, or * for every host. Without a port, 80 and 443 are allowed.
func ParseHosts(entries []string) (Hosts, error) {
	var all Hosts
	for _, entry := range entries {
		host, port, err := splitHost(entry)
		if err != nil {
			return nil, err
		}
		rule := hostRule{host: canonical(host), port: port}
		switch below, wild := strings.CutPrefix(host, "*."); {
		case host == "*":
			rule.kind = ruleAny
		case wild:
			rule.kind, rule.host = ruleBelow, "."+below
		}
		if rule.kind == ruleAny && entry != "*" && !strings.HasPrefix(entry, "*:") || rule.kind != ruleAny && (strings.Contains(rule.host, "*") || rule.host == "." || !isASCII(host)) {
			return nil, fmt.Errorf("%q is no host: *, a name, *.name or an address, each with a port or without", entry)
		}
		all = append(all, rule)
	}
	return all, nil
}

// Allow reports whether a request may name this host and port.
func (h Hosts) Allow(host string, port uint16) bool {
	host = canonical(bare(host))
	_, err := netip.ParseAddr(host)
	for _, r := range h {
		if r.port != port && (r.port != 0 || port != 80 && port != 443) {
			continue
		}
		switch {
		case r.kind == ruleAny,
			r.kind == ruleExact && r.host == host,
			r.kind == ruleBelow && err != nil && strings.HasSuffix(host, r.host) && len(host) > len(r.host):
			return true
		}
	}
	return false
}

// canonical gives an address the one form that it is compared in.
func canonical(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return host
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0x7e || r <= ' ' }) < 0
}
