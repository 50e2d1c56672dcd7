package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"notebox/access"
)

const (
	// defaultPrefix is for a server with one deployment.
	defaultPrefix = "notebox"
	// dialTime is more than a handshake with TLS takes: it is done beforehand where it can be.
	dialTime = 500 * time.Millisecond
	// idleConnections wait for the next calls, which would have to connect in their short time.
	idleConnections = 4
	// maxAsRead is what one call may take if its context says nothing.
	maxAsRead = time.Second
)

// Store is an access.Store.
type Store struct {
	client  *goredis.Client
	prefix  string
	scripts scripts
}

// Open returns the Store of a URL: redis://user:password@host:port/number?prefix=notebox, with
// rediss:// for TLS. The number is the server's database; the prefix is for deployments that
// share one. Nothing is asked of the server yet. An error shows nothing of the URL.
func Open(text string) (*Store, error) {
	u, err := url.Parse(text)
	if err != nil { // which has the URL in it
		return nil, errors.New("it is no URL")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" || u.Host == "" {
		return nil, errors.New("it must begin with redis://host or rediss://host")
	}
	query := u.Query()
	prefix := defaultPrefix
	if query.Has("prefix") {
		prefix = query.Get("prefix")
	}
	query.Del("prefix")
	if len(query) > 0 || u.Fragment != "" {
		return nil, errors.New("its only option is prefix")
	}
	if prefix == "" || strings.ContainsAny(prefix, "{}") {
		return nil, errors.New("its prefix must not be empty, nor have braces in it")
	}
	u.RawQuery = ""
	o, err := goredis.ParseURL(u.String())
	if err != nil {
		return nil, errors.New("its path must be the number of a database")
	}
	o.MaxRetries, o.DialerRetries = -1, 1 // there is no time for a second try
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTime, maxAsRead, maxAsRead, maxAsRead
	o.ContextTimeoutEnabled = true
	o.MinIdleConns = idleConnections
	o.PipelinePoolSize = -1 // one pool is enough
	// What the server needs not know, and older ones do not.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	logging.Disable() // what matters comes as an error, and is logged once
	return &Store{client: goredis.NewClient(o), prefix: prefix, scripts: newScripts()}, nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// key names what is kept of an owner. All of it is in one slot of a cluster.
func (s *Store) key(owner, what string) string { return s.prefix + ":{" + owner + "}:" + what }

// Request implements access.Store.
func (s *Store) Request(ctx context.Context, owner string, perMinute int) (wait time.Duration, err error) {
	us, err := s.scripts.request.Run(ctx, s.client, []string{s.key(owner, "requests")}, perMinute).Int64()
	return time.Duration(us) * time.Microsecond, err
}

// Begin implements access.Store.
func (s *Store) Begin(ctx context.Context, a access.Asked) (access.Told, error) {
	keys := []string{s.key(a.Owner, "runs"), s.key(a.Owner, "cpu")}
	said, err := s.scripts.begin.Run(ctx, s.client, keys, a.Place, a.RunsAtOnce, access.Lease.Milliseconds(), a.CPUPerDay.Microseconds()).Int64Slice()
	if err != nil {
		return access.Told{}, err
	}
	if len(said) != 5 {
		return access.Told{}, fmt.Errorf("begin: %d numbers", len(said))
	}
	return access.Told{
		Full: said[0] == 1, Spent: said[1] == 1,
		CPU: time.Duration(said[2]) * time.Microsecond, Taken: int(said[3]), Now: time.UnixMicro(said[4]),
	}, nil
}

// Report implements access.Store. It is one round trip, but for a server that does not know
// the scripts yet.
func (s *Store) Report(ctx context.Context, r *access.Report) (*access.Heard, error) {
	h, err := s.report(ctx, r)
	if !goredis.HasErrorPrefix(err, "NOSCRIPT") {
		return h, err
	}
	for _, script := range []*goredis.Script{s.scripts.settle, s.scripts.meet} {
		if err := script.Load(ctx, s.client).Err(); err != nil {
			return nil, err
		}
	}
	return s.report(ctx, r)
}

func (s *Store) report(ctx context.Context, r *access.Report) (*access.Heard, error) {
	pipe := s.client.Pipeline()
	leaves := 0
	if r.Leaves {
		leaves = 1
	}
	// The first, so that a server that does not know the scripts does none of the rest.
	met := s.scripts.meet.EvalSha(ctx, pipe, []string{s.prefix + ":services"}, r.Service, access.Lease.Milliseconds(), leaves)
	used := map[string]*goredis.Cmd{}
	for owner, a := range r.Owners {
		keys := []string{s.key(owner, "runs"), s.key(owner, "cpu"), s.key(owner, "requests")}
		used[owner] = s.scripts.settle.EvalSha(ctx, pipe, keys, arguments(r, a)...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	h, err := heard(met)
	if err != nil {
		return nil, err
	}
	for owner, c := range used {
		us, err := c.Int64()
		if err != nil {
			return nil, err
		}
		h.CPU[owner] = time.Duration(us) * time.Microsecond
	}
	return h, nil
}

// heard reads the answer of meet.
func heard(met *goredis.Cmd) (*access.Heard, error) {
	said, err := met.Slice()
	if err != nil {
		return nil, err
	}
	if len(said) != 3 {
		return nil, fmt.Errorf("meet: %d answers", len(said))
	}
	now, isNow := said[0].(int64)
	isNew, isNumber := said[1].(int64)
	services, isList := said[2].([]any)
	if !isNow || !isNumber || !isList {
		return nil, errors.New("meet: other answers than were asked for")
	}
	h := &access.Heard{Now: time.UnixMicro(now), New: isNew == 1, CPU: map[string]time.Duration{}}
	for _, service := range services {
		h.Services = append(h.Services, fmt.Sprint(service))
	}
	return h, nil
}

// arguments are those of settle.
func arguments(r *access.Report, a *access.Account) []any {
	all := []any{
		r.Service, access.Lease.Milliseconds(), strconv.FormatInt(r.Day.Unix()/int64(24*time.Hour/time.Second), 10),
		a.CPU.Microseconds(), a.Left, a.PerMinute, len(a.Ended),
	}
	for _, place := range a.Ended {
		all = append(all, place)
	}
	for _, place := range a.Held {
		all = append(all, place)
	}
	return all
}

var _ access.Store = (*Store)(nil)
