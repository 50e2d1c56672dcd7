package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/dependencies"
	"notebox/environments"
	"notebox/runner"
)

// fakePackages installs what a test wants.
type fakePackages struct {
	policy   dependencies.Policy
	asked    []dependencies.Request
	say      []string
	fail     error
	hold     bool // until the caller leaves
	released int
}

func (f *fakePackages) Parse(of environments.Dependencies, entries []string) (dependencies.Set, error) {
	return dependencies.Parse(of, entries, f.policy)
}

func (f *fakePackages) Allowed() []string { return f.policy.Allow }

func (f *fakePackages) Get(ctx context.Context, r dependencies.Request) (*dependencies.Layer, error) {
	f.asked = append(f.asked, r)
	for _, text := range f.say {
		if r.Text != nil {
			r.Text(text)
		}
	}
	if f.hold {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.fail != nil {
		return nil, f.fail
	}
	r.Ran(&runner.Outcome{Usage: runner.Usage{CPU: time.Second, Wall: time.Second}}, nil, time.Second, runner.DefaultLimits())
	env := r.Base
	env.Image = "layer"
	return dependencies.NewLayer(env, []environments.Package{{Name: "polars", Version: "1.2"}}, 2*time.Second, func() { f.released++ }), nil
}

// withPackages has requests for Python have dependencies.
func withPackages(f *fakePackages) func(*Config) {
	return func(c *Config) {
		c.Dependencies = f
		c.Environments[0].Dependencies = &environments.Dependencies{Notation: "pip", Installer: "/i.py"}
	}
}

func TestDependencies(t *testing.T) {
	f := &fakePackages{}
	s := newService(t, withPackages(f))
	r := s.postJSON(`{"code":"x","dependencies":["Polars == 1.*"]}`)
	require.Contains(t, string(r.body), `"install":{"packages":[{"name":"polars","version":"1.2"}],"seconds":2,"cached":false}`)
	require.Equal(t, "layer", s.only().Environment.Image)
	require.Equal(t, "jupyter", s.only().Environment.Name)
	require.Equal(t, []string{"polars==1.*"}, f.asked[0].Set.Entries)
	require.Equal(t, python.Image, f.asked[0].Base.Image)
	require.Equal(t, 1, f.released)
	for _, body := range []string{`{"code":"x"}`, `{"code":"x","dependencies":[]}`, `{"code":"x","dependencies":null}`} {
		require.NotContains(t, string(s.postJSON(body).body), `"install"`)
	}
	require.Len(t, f.asked, 1)
	contentType, form := formBody(formPart{`name="code"`, "x"}, formPart{`name="dependencies"`, `["six"]`})
	s.replied(s.post("/v1/execute", contentType, form))
	require.Equal(t, []string{"six"}, f.asked[1].Set.Entries)
	require.Contains(t, string(s.get("/v1/environments").body), `"dependencies":{"notation":"pip"}`)
	require.Equal(t, 1, strings.Count(string(s.get("/v1/environments").body), `"dependencies"`), "R has none")
}

func TestDependenciesRefused(t *testing.T) {
	s := newService(t, withPackages(&fakePackages{policy: dependencies.Policy{Allow: []string{"polars"}}}))
	for _, c := range []struct {
		desc, body string
		status     int
		detail     string
	}{
		{"an option", `{"code":"x","dependencies":["polars","--index-url=http://x"]}`, 422, "dependencies[1]: is not a package's name"},
		{"a URL", `{"code":"x","dependencies":["https://x.org/x.whl"]}`, 422, "dependencies[0]: "},
		{"a path", `{"code":"x","dependencies":["./x"]}`, 422, "dependencies[0]: "},
		{"a reference", `{"code":"x","dependencies":["git+https://x.org/x"]}`, 422, "dependencies[0]: "},
		{"a command", `{"code":"x","dependencies":[";rm -rf /"]}`, 422, "dependencies[0]: "},
		{"not allowed", `{"code":"x","dependencies":["six"]}`, 403, "dependencies[0]: this service's operator does not allow six; allowed are: polars"},
		{"too many", `{"code":"x","dependencies":["a` + strings.Repeat(`","a`, 64) + `"]}`, 422, "dependencies: are more than 64"},
		{"a language without", `{"code":"x","language":"r","dependencies":["dplyr"]}`, 422, "dependencies: are not supported for r"},
		{"no list", `{"code":"x","dependencies":"polars"}`, 400, "dependencies"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.requireProblem(s.postJSON(c.body), c.status, c.detail)
		})
	}
	off := newService(t, withPackages(nil), func(c *Config) { c.Dependencies = nil })
	off.requireProblem(off.postJSON(`{"code":"x","dependencies":["six"]}`), 403, "dependencies: this service's operator allows none")
	require.NotContains(t, string(off.get("/v1/environments").body), `"dependencies"`)
}

func TestDependenciesThatFail(t *testing.T) {
	f := &fakePackages{say: []string{"Collecting \x1b[31mpolars\x1b[0m\n"}, fail: &dependencies.Failure{Name: dependencies.Unresolvable, Message: "No matching distribution found for polars==99"}}
	s := newService(t, withPackages(f))
	r := s.replied(s.postJSON(`{"code":"x","dependencies":["polars==99"]}`))
	require.Equal(t, "error", r.Status)
	require.Equal(t, "Collecting polars\nUnresolvable: No matching distribution found for polars==99\n", r.Text)
	require.Equal(t, "Unresolvable", r.Error["name"])
	require.Equal(t, "No matching distribution found for polars==99", r.Error["message"])
	require.Contains(t, r.Hint, "such as numpy, pandas")
	require.Empty(t, s.started(), "no code was run")
	f.fail = &runner.Error{Code: runner.CodeUnavailable, Message: "dependencies: the package registry cannot be reached", RetryAfter: 5 * time.Second}
	a := s.postJSON(`{"code":"x","dependencies":["polars"]}`)
	s.requireProblem(a, 503, "the package registry cannot be reached")
	require.Equal(t, "5", a.Header.Get("Retry-After"))
	f.fail = errors.New("secret path")
	a = s.postJSON(`{"code":"x","dependencies":["polars"]}`)
	s.requireProblem(a, 500, "the service failed")
	require.NotContains(t, string(a.body), "secret path")
}

func TestDependenciesAreStreamed(t *testing.T) {
	f := &fakePackages{say: []string{"one\n", "two\n"}}
	s := newService(t, withPackages(f))
	req := s.request("POST", "/v1/execute", "application/json", strings.NewReader(`{"code":"x","dependencies":["polars"]}`))
	req.Header.Set("Accept", "text/event-stream")
	body := string(s.do(req).body)
	require.Contains(t, body, "event: started\n")
	require.Contains(t, body, "event: install\ndata: {\"text\":\"one\\n\"}\n\nevent: install\ndata: {\"text\":\"two\\n\"}\n\nevent: done\n")
}

func TestDependenciesArePartOfWhatIsAsked(t *testing.T) {
	s := newService(t, withPackages(&fakePackages{}))
	s.replied(s.do(s.with(`{"code":"x","dependencies":["polars","six"]}`, idempotent, "k")))
	s.replied(s.do(s.with(`{"code":"x","dependencies":["six","polars"]}`, idempotent, "k")))
	require.Equal(t, 409, s.do(s.with(`{"code":"x","dependencies":["polars"]}`, idempotent, "k")).StatusCode)
	require.Len(t, s.started(), 1)
}

// TestDependenciesOfWhoLeaves: a client that goes away does not hold an installation.
func TestDependenciesOfWhoLeaves(t *testing.T) {
	f := &fakePackages{hold: true}
	s := newService(t, withPackages(f))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	req := s.request("POST", "/v1/execute", "application/json", strings.NewReader(`{"code":"x","dependencies":["polars"]}`)).WithContext(ctx)
	_, err := http.DefaultTransport.RoundTrip(req)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	waiting, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	require.NoError(t, s.server.Wait(waiting))
	require.Empty(t, s.started())
}

func TestHintOfPackages(t *testing.T) {
	s := newService(t, withPackages(&fakePackages{}))
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusError, raised("ModuleNotFoundError", "No module named 'polars'")), nil
	}
	require.Contains(t, s.replied(s.postJSON(`{"code":"x"}`)).Hint, "name the package that has it in dependencies, as pip does")
}

// TestDependenciesOfASession: they are there for all of its runs.
func TestDependenciesOfASession(t *testing.T) {
	f, sessions := &fakePackages{}, newSessions(t)
	var opened []runner.Environment
	var refused error
	sessions.OnStart = func(_ context.Context, env runner.Environment) error {
		require.Zero(t, f.released)
		opened = append(opened, env)
		return refused
	}
	s := withSessions(t, sessions, withPackages(f))
	a := s.post(sessionsPath, "application/json", `{"dependencies":["polars"]}`)
	s.asDescribed("POST", sessionsPath, a)
	entry := s.opened(a)
	require.Len(t, opened, 1)
	require.Equal(t, "layer", opened[0].Image)
	require.Zero(t, f.released, "it is held until the session is over")
	session, err := sessions.Find("", entry.ID)
	require.NoError(t, err)
	require.NoError(t, session.Close(t.Context()))
	require.Equal(t, 1, f.released)
	f.released, refused = 0, &runner.Error{Code: runner.CodeUnavailable, Message: "no daemon", RetryAfter: time.Second}
	s.requireRefused(s.post(sessionsPath, "application/json", `{"dependencies":["polars"]}`), 503, "no daemon")
	require.Equal(t, 1, f.released)
	s.requireRefused(s.post(sessionsPath, "application/json", `{"dependencies":["-r x"]}`), 422, "dependencies[0]: ")
	f.fail = &dependencies.Failure{Name: dependencies.Unresolvable, Message: "No matching distribution"}
	s.requireRefused(s.post(sessionsPath, "application/json", `{"dependencies":["polars"]}`), 422, "dependencies: Unresolvable: No matching distribution")
	require.Len(t, opened, 2)
}

func TestDependenciesAsDescribed(t *testing.T) {
	s := newService(t, withPackages(&fakePackages{policy: dependencies.Policy{Allow: []string{"polars"}}}))
	s.asDescribed("POST", "/v1/execute", s.postJSON(`{"code":"x","dependencies":["polars"]}`))
	s.asDescribed("GET", "/v1/environments", s.get("/v1/environments"))
}
