package dependencies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"notebox/runner"
)

// errUnreachable is the cause if an installer did not get to the registry.
var errUnreachable = errors.New("the registry does not answer")

// source is where the packages of an environment come from.
type source struct {
	network Network

	mu    sync.Mutex
	until time.Time // when the registry may be asked again
}

// reach says that the registry cannot be reached, before a sandbox is started for nothing:
// clients try again for minutes.
func (s *source) reach(ctx context.Context) error {
	s.mu.Lock()
	away := time.Now().Before(s.until)
	s.mu.Unlock()
	if away {
		return cutOff(errUnreachable)
	}
	return s.look(ctx)
}

// unreached returns why a client did not get to the registry; message is its words. If
// the service gets there, it is the set's affair: one caller's package, whose files are
// where nobody answers, shuts the registry for nobody else.
func (s *source) unreached(ctx context.Context, message string) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	return &Failure{Unresolvable, message}
}

func (s *source) look(ctx context.Context) error {
	err := s.network.Reach(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(unreachableRetry) // others do not try for a moment
	return cutOff(err)
}

// sourceOf asks the environment's installer for its hosts, once in the life of this
// process: the image and the settings are the same all the time. Of those that want to know
// at the same time one asks. If that leaves, or has no place to run, another does.
func (l *Layers) sourceOf(ctx context.Context, r Request) (*source, error) {
	key := r.Base.Name + " " + r.Base.Image
	for {
		asked := false
		src, err, _ := l.asking.Do(key, func() (any, error) {
			asked = true
			return l.newSource(ctx, key, r)
		})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			return src.(*source), nil
		case asked || !errors.Is(err, context.Canceled) && !turnedAway(err):
			return nil, err
		}
	}
}

func (l *Layers) newSource(ctx context.Context, key string, r Request) (*source, error) {
	l.mu.Lock()
	src := l.sources[key]
	l.mu.Unlock()
	if src != nil {
		return src, nil
	}
	hosts, err := l.hostsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	src = &source{}
	if src.network, err = l.options.Network(hosts); err != nil {
		return nil, fmt.Errorf("dependencies: %w", err)
	}
	l.log.Info("packages come from", "environment", r.Environment.Name, "hosts", hosts)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources[key] = src
	return src, nil
}

// hostsOf is what the installer says, or has said to an earlier process.
func (l *Layers) hostsOf(ctx context.Context, r Request) ([]string, error) {
	base, err := l.base(ctx, r.Base.Image)
	if err != nil {
		return nil, err
	}
	key := hash(append([]string{"hosts", r.Environment.Name, base}, l.options.settings()...)...)
	if hosts := l.remembered()[key]; hosts != nil {
		return hosts, nil
	}
	s := l.newSink(func(string) {})
	err = l.run(ctx, r, map[string]any{"phase": "hosts"}, nil, s, func(out *runner.Outcome, err error) error {
		if err == nil {
			err = l.outcome(ctx, out, s)
		}
		return err
	})
	var failure *Failure
	if errors.As(err, &failure) { // it was not asked for packages
		err = fmt.Errorf("dependencies: the installer does not name its hosts: %s", failure.Error())
	}
	if err != nil {
		return nil, err
	}
	hosts, err := decodeHosts(s.hosts)
	if err == nil {
		l.remember(key, hosts)
	}
	return hosts, err
}

// remembered is what HostsFile has, by a hash of all that decides of it.
func (l *Layers) remembered() map[string][]string {
	raw, err := os.ReadFile(l.options.HostsFile)
	var all map[string][]string
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// maxRemembered keeps the file from growing with each change of an image.
const maxRemembered = 100

func (l *Layers) remember(key string, hosts []string) {
	if l.options.HostsFile == "" {
		return
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	all := l.remembered()
	if all == nil || len(all) >= maxRemembered {
		all = map[string][]string{}
	}
	all[key] = hosts
	raw, err := json.Marshal(all)
	if err == nil {
		err = replaceFile(l.options.HostsFile, raw)
	}
	if err != nil {
		l.log.Warn("the hosts of a registry are not kept for the next start", "error", err)
	}
}

// replaceFile has a reader find the old file or the whole new one, also after a crash.
func replaceFile(name string, content []byte) error {
	unfinished := name + ".new"
	if err := os.WriteFile(unfinished, content, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, name)
}

// maxHosts of an installer: an index, its mirrors and where they keep files.
const maxHosts = 50

// hostName is a name or an address of IPv4; one of IPv6 is in brackets.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})$`)

// decodeHosts reads hosts.json.
func decodeHosts(raw []byte) ([]string, error) {
	var list struct {
		Hosts []string `json:"hosts"`
	}
	if err := decodeStrictly(raw, &list); err != nil {
		return nil, fmt.Errorf("dependencies: hosts.json: %w", err)
	}
	if len(list.Hosts) == 0 || len(list.Hosts) > maxHosts {
		return nil, fmt.Errorf("dependencies: hosts.json: there are %d hosts", len(list.Hosts))
	}
	for _, entry := range list.Hosts {
		host, port, err := net.SplitHostPort(entry)
		n, perr := strconv.ParseUint(port, 10, 16)
		if err != nil || perr != nil || n == 0 || !hostName.MatchString(host) && net.ParseIP(host) == nil {
			return nil, fmt.Errorf("dependencies: hosts.json: %q is no host with a port", entry)
		}
	}
	return list.Hosts, nil
}

// decodeStrictly reads one JSON text that has no other fields.
func decodeStrictly(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("there is more than one value")
	}
	return nil
}
