package peers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// MinSecret is how many bytes a secret has at least: as many as the MAC's hash.
const MinSecret = sha256.Size

const (
	// dialTime is how long a peer may take to accept a connection: they are in one network.
	dialTime = 3 * time.Second
	// headerLimit bounds the header of a peer's answer, in bytes.
	headerLimit = 64 << 10
)

// alive finds a peer that vanished while it was waited for: within some 25 s.
var alive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// Config is what Peers are made of. Own, Secret and Names must be set.
type Config struct {
	Own    netip.AddrPort // of this service, as its peers see it
	Secret []byte         // which all peers share; at least MinSecret bytes
	// Names are the peers', this service included or not: NAME:PORT. Every address of a name
	// is a peer's.
	Names []string
	// Lookup returns the addresses of a host; nil: net.DefaultResolver. What is not found is
	// a *net.DNSError that says so.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // nil: a net.Dialer's
	Log    *slog.Logger                                                         // nil: nothing is logged
	Now    func() time.Time                                                     // nil: time.Now
}

// Peers are the services behind one address, as one of them sees them.
type Peers struct {
	own       string
	secret    []byte
	names     []name
	lookup    func(context.Context, string) ([]netip.Addr, error)
	transport *http.Transport
	log       *slog.Logger
	now       func() time.Time
	known     known
	minting   sync.Mutex
	minted    uint64 // the last moment
	seen      seen
}

// New returns the peers. It asks nobody.
func New(cfg Config) (*Peers, error) {
	if len(cfg.Secret) < MinSecret {
		return nil, fmt.Errorf("the peers' secret has %d bytes; it must have at least %d", len(cfg.Secret), MinSecret)
	}
	if !cfg.Own.IsValid() || cfg.Own.Addr().IsUnspecified() || cfg.Own.Port() == 0 {
		return nil, fmt.Errorf("%s is no address at which peers find this service", cfg.Own)
	}
	if len(cfg.Names) == 0 {
		return nil, errors.New("peers: there is no name")
	}
	p := &Peers{own: textOf(cfg.Own), secret: cfg.Secret, lookup: cfg.Lookup, log: cfg.Log, now: cfg.Now}
	for _, text := range cfg.Names {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			return nil, fmt.Errorf("peers: %w", err)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 || host == "" {
			return nil, fmt.Errorf("peers: %q is not NAME:PORT", text)
		}
		p.names = append(p.names, name{host, uint16(number)})
	}
	if p.lookup == nil {
		p.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime, KeepAliveConfig: alive}).DialContext
	}
	// A connection for each request: one that is kept would not tell that its peer is gone
	// until a request was lost on it. No proxy: the address is a peer's.
	p.transport = &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: headerLimit}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// Own is this service's address.
func (p *Peers) Own() string { return p.own }

// textOf is an address as all peers write it.
func textOf(a netip.AddrPort) string {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String()
}

// mac is HMAC-SHA256 over what it is for and its parts, none of which can run into another.
func (p *Peers) mac(what string, parts ...string) []byte {
	h := hmac.New(sha256.New, p.secret)
	for _, part := range append([]string{"notebox peers 1", what}, parts...) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}
