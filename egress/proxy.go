package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// DefaultMaxBytes of one run: more than its /mnt/data and /tmp hold together.
const DefaultMaxBytes = 1 << 30

// Options are what a Proxy is made of.
type Options struct {
	Hosts      Hosts    // that requests may name
	Exceptions []string // hosts at addresses that are not public; see NewGuard
	// Own is where the service itself is reached, "host" or "host:port": a name is
	// refused, an address on its port, or on all if it has none, and that port on
	// all addresses of this machine.
	Own []string
	// Credentials sign requests to their hosts in, so that no program has them. TLS to such a
	// host ends at the proxy, which has programs trust it; the proxy itself trusts what
	// this machine does and CA.
	Credentials []Credential

	CA       []byte   // PEM that programs are to trust; see runner.Network
	MaxBytes int64    // of one run, both directions together; 0 is DefaultMaxBytes
	Resolver Resolver // nil: net.DefaultResolver
	Log      *slog.Logger
}

// Proxy is an HTTP proxy with a policy. It implements runner.Network.
type Proxy struct {
	hosts    Hosts
	dialer   Dialer
	ownNames []string
	own      []netip.AddrPort // port 0: all
	ca       []byte
	maxBytes int64
	log      *slog.Logger

	credentials []Credential
	authority   *authority  // nil: no TLS ends here
	outside     *tls.Config // of the proxy's own requests; nil: it has none by TLS
}

// New returns a Proxy. It holds nothing that would have to be closed.
func New(o Options) (*Proxy, error) {
	guard, err := NewGuard(o.Exceptions)
	if err != nil {
		return nil, err
	}
	p := &Proxy{hosts: o.Hosts, ca: o.CA, maxBytes: cmp.Or(o.MaxBytes, DefaultMaxBytes), log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
	p.dialer = Dialer{Guard: guard, Resolver: o.Resolver, Refuse: p.isService}
	for _, own := range o.Own {
		host, port, err := splitHost(own)
		if err != nil {
			return nil, err
		}
		if ip, err := netip.ParseAddr(host); err != nil {
			p.ownNames = append(p.ownNames, host)
		} else {
			p.own = append(p.own, netip.AddrPortFrom(plain(ip), port))
		}
	}
	return p, p.takeCredentials(o.Credentials)
}

func (p *Proxy) takeCredentials(all []Credential) error {
	p.credentials = all
	var hosts []string
	for _, c := range all {
		host, _, err := splitHost(c.Host)
		if err != nil {
			return err
		}
		if c.Scheme == "https" {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("this host's certificates: %w", err)
	}
	pool.AppendCertsFromPEM(p.ca)
	p.outside = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if p.authority, err = newAuthority(hosts); err != nil {
		return err
	}
	p.ca = slices.Concat(p.ca, []byte("\n"), p.authority.pem)
	return nil
}

// CA returns certificates in PEM that programs are to trust; may be nil.
func (p *Proxy) CA() []byte { return p.ca }

// isService reports whether an address is where the service itself listens, or is
// reached through a router that has its public address.
func (p *Proxy) isService(a netip.AddrPort) bool {
	ip := plain(a.Addr())
	return slices.ContainsFunc(p.own, func(own netip.AddrPort) bool {
		return own.Addr() == ip && (own.Port() == 0 || own.Port() == a.Port()) ||
			own.Port() == a.Port() && p.dialer.Guard.IsOwn(ip)
	})
}

// refusal is why a request is not answered by its destination, as its program is told.
type refusal struct {
	status int
	text   string
	cause  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.cause }

// allow checks the destination of a request, "host:port".
func (p *Proxy) allow(address string) error {
	host, service, err := net.SplitHostPort(address)
	port, perr := strconv.ParseUint(service, 10, 16)
	// Destinations are compared as texts: 0443 and 443 must not be two of them.
	if err != nil || perr != nil || service != strconv.FormatUint(port, 10) || port == 0 || host == "" {
		return &refusal{status: http.StatusBadRequest, text: "the destination must be a host and a port"}
	}
	if !isASCII(host) { // http.Transport would make another name of it, after this
		return &refusal{status: http.StatusBadRequest, text: "the host must be in ASCII, a name as xn--"}
	}
	if slices.Contains(p.ownNames, bare(host)) || !p.hosts.Allow(host, uint16(port)) {
		return &refusal{status: http.StatusForbidden, text: "it is not among the hosts that this service's operator allows"}
	}
	return nil
}

// explain makes a refusal of any error of a connection. It gives away nothing of
// a host that may not be reached: neither its address nor whether anything listens.
func explain(err error) *refusal {
	var r *refusal
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, ErrAddress):
		return &refusal{http.StatusForbidden, "it is " + ErrAddress.Error(), err}
	case errors.Is(err, ErrHost):
		return &refusal{http.StatusBadGateway, "there is no host of that name", err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &refusal{http.StatusGatewayTimeout, "it did not answer in time", err}
	}
	return &refusal{http.StatusBadGateway, "the connection to it failed", err}
}

// answer tells a program why its request goes no further.
func (r *refusal) answer(w http.ResponseWriter, host string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.status)
	_, _ = fmt.Fprintf(w, "notebox: no connection to %q: %s\n", host, r.text)
}
