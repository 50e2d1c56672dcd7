package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/tests/starter"
)

// Service is one that runs.
type Service struct{ *starter.Process }

// Options say what to start.
type Options struct {
	Name   string            // after the id of the shared service
	Folder string            // of its state, files and log; "" is a new one
	Flags  []string          // they win over those that all have
	Env    []string          // more variables, "NAME=value"
	Etc    map[string]string // files that it sees in /etc in place of the machine's, by name
}

// Start starts a service for one test.
func Start(t *testing.T, name string, flags ...string) *Service {
	t.Helper()
	return Options{Name: name, Flags: flags}.Start(t)
}

// Start starts a service, which is stopped at the end of the test, if it was not before.
func (o Options) Start(t *testing.T) *Service {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	s := new(Service)
	var err error
	s.Process, err = o.launch(ID(o.Name))
	require.NoError(t, err)
	t.Cleanup(func() {
		if !s.Over() {
			require.NoError(t, s.Stop(context.Background()))
		}
		if t.Failed() {
			s.printErrors()
		}
	})
	require.NoError(t, s.Await(t.Context()))
	return s
}

// Refused starts a service that must not start, and returns the error that says why.
func (o Options) Refused(t *testing.T) error {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	p, err := o.launch(ID("refused"))
	require.NoError(t, err)
	err = p.Await(t.Context())
	if err == nil {
		err = p.Stop(context.Background())
		require.Fail(t, "the service has started", "%v", err)
	}
	return err
}

func (o Options) launch(id string) (*starter.Process, error) {
	program, err := starter.Notebox()
	if err != nil {
		return nil, err
	}
	return starter.Launch(starter.Options{
		Program: program, ID: id, Folder: o.Folder, Env: o.Env, Etc: o.Etc,
		Flags: append([]string{"--max-waiting", "100", "--max-wait", "5m", "--model", "off", "--drain", "2s"}, o.Flags...),
	})
}

// printErrors shows what the service had to say about a test that failed.
func (s *Service) printErrors() {
	for line := range strings.Lines(s.Logged()) {
		if !strings.Contains(line, "level=INFO") {
			fmt.Fprint(os.Stderr, line)
		}
	}
}

// Metric reads one series of the service's.
func (s *Service) Metric(t *testing.T, series string) float64 {
	t.Helper()
	status, raw := Get(t, s.URL+"/metrics")
	require.Equal(t, http.StatusOK, status)
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindSubmatch(raw)
	require.NotNil(t, found, "no %s in\n%s", series, raw)
	value, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return value
}

// Sandboxes is how many the pool has in a state: warm, starting, running, session or
// removing. Unlike /readyz, this has the service prove nothing by a run of its own.
func (s *Service) Sandboxes(t *testing.T, state string) int {
	t.Helper()
	return int(s.Metric(t, `notebox_pool_sandboxes{state="`+state+`"}`))
}

// InCells reports whether runs have cells.
func (s *Service) InCells(t *testing.T) bool {
	t.Helper()
	return s.Metric(t, `notebox_isolation{kind="cell"}`) == 1
}

// Available are the names of the environments whose images are there.
func (s *Service) Available(t *testing.T) map[string]bool {
	t.Helper()
	var list struct {
		Environments []struct {
			Name      string
			Available bool
		}
	}
	status, raw := Get(t, s.URL+"/v1/environments")
	require.Equal(t, http.StatusOK, status, "%s", raw)
	require.NoError(t, json.Unmarshal(raw, &list), "%s", raw)
	available := map[string]bool{}
	for _, e := range list.Environments {
		available[e.Name] = e.Available
	}
	return available
}

// SandboxImage is that of the sandboxes for Python.
func SandboxImage(t *testing.T) string {
	t.Helper()
	all, err := environments.Load("")
	require.NoError(t, err)
	return all[0].Image
}
