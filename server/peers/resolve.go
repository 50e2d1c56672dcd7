package peers

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// lookupTime bounds one look for the peers' addresses: callers wait.
	lookupTime = 2 * time.Second
	// keptFor is how long addresses are good enough for a session that is found by them,
	// and freshFor for one that is not.
	keptFor  = 5 * time.Second
	freshFor = time.Second
	// maxPeers bounds the addresses: more is no Service of notebox.
	maxPeers = 1000
)

// name is one of Config.Names.
type name struct {
	host string
	port uint16
}

// known are the peers' addresses as they were last found.
type known struct {
	mu  sync.Mutex
	at  time.Time // zero: never
	all []string  // where some were not found, those of before are among them
	err error     // why some may be missing
}

// addresses are the peers', this service's own among them or not, as they were at most so
// long ago. With an error some may be missing.
func (p *Peers) addresses(ctx context.Context, age time.Duration) ([]string, error) {
	k := &p.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.at.IsZero() && time.Since(k.at) < age {
		return k.all, k.err
	}
	// For all who ask, so it does not end with the one who asked first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
	defer cancel()
	all, err := p.look(ctx)
	if err != nil {
		all = append(all, k.all...)
		slices.Sort(all)
		all = slices.Compact(all)
	}
	k.all, k.err, k.at = all, err, time.Now()
	return k.all, k.err
}

// forget has the next caller look anew: a peer did not answer.
func (p *Peers) forget() {
	p.known.mu.Lock()
	defer p.known.mu.Unlock()
	p.known.at = time.Time{}
}

// look asks for all names. A name without an address is that of a peer that is not there.
func (p *Peers) look(ctx context.Context) (all []string, err error) {
	for _, n := range p.names {
		found, failed := p.lookup(ctx, n.host)
		var dns *net.DNSError
		if errors.As(failed, &dns) && dns.IsNotFound {
			continue
		}
		err = errors.Join(err, failed)
		for _, addr := range found {
			all = append(all, textOf(netip.AddrPortFrom(addr, n.port)))
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case err == nil && len(all) == 0: // this service at least should be there
		err = errors.New("there are none")
	case len(all) > maxPeers:
		all, err = nil, errors.New("there are too many")
	}
	return all, err
}

// Check returns what an operator should mend: peers would not find this service.
func (p *Peers) Check(ctx context.Context) error {
	all, err := p.addresses(ctx, freshFor)
	if err == nil && !slices.Contains(all, p.own) {
		err = errors.New("this service's own address is not among them, so that no peer finds its sessions")
	}
	return err
}

// others are the addresses of all but this service.
func (p *Peers) others(ctx context.Context) ([]string, error) {
	all, err := p.addresses(ctx, freshFor)
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == p.own }), err
}
