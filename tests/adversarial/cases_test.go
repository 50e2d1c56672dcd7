package adversarial

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// only names the cases to be sent, all if it is empty: -cases 'A1|B.*'.
var only = flag.String("cases", "", "regular expression of the ids to send")

// show is for who writes a case.
var show = flag.Bool("show", false, "print every answer")

const (
	// groupsAtOnce is how many services take cases at one time: while one waits for a
	// time limit another one works.
	groupsAtOnce = 3
	// groupsThere is how many services there are at one time, with those that have had
	// their cases and wait for half a minute until their connections to the daemon close.
	groupsThere = "8"
)

// checks are the functions that a case may name.
func checks() map[string]Check {
	all := map[string]Check{}
	for _, some := range []map[string]Check{resourceChecks, outputChecks, isolationChecks, postureChecks, fileChecks, requestChecks, sessionChecks, shareChecks} {
		maps.Copy(all, some)
	}
	return all
}

// outcome is the line that is printed for a case.
type outcome struct {
	id       string
	took     time.Duration
	failures []string
	again    string // why a second try was needed
	here     *Here
}

func (o outcome) String() string {
	word := "pass"
	if len(o.failures) > 0 {
		word = "FAIL"
	}
	line := fmt.Sprintf("%s %s %.1fs", o.id, word, o.took.Seconds())
	if o.again != "" {
		line += " (second try: " + o.again + ")"
	}
	if o.here != nil {
		line += " (not here: " + o.here.Cannot + "; instead: " + o.here.Nearest + ")"
	}
	for _, f := range o.failures {
		line += "\n    " + f
	}
	return line
}

// TestCases sends every case of cases/ to the real service.
func TestCases(t *testing.T) {
	all, err := Load(os.DirFS("cases"))
	require.NoError(t, err)
	if *only != "" {
		wanted := regexp.MustCompile("^(" + *only + ")$")
		all = slices.DeleteFunc(all, func(c Case) bool { return !wanted.MatchString(c.ID) })
	}
	daemon, err := OpenDaemon()
	require.NoError(t, err)
	defer daemon.Close()

	begun := time.Now()
	places := make(chan struct{}, groupsAtOnce)
	var mu sync.Mutex
	var outcomes []outcome
	t.Run("group", func(t *testing.T) {
		for i, g := range groups(all) {
			t.Run(g.name(), func(t *testing.T) {
				t.Parallel()
				var trial *Trial
				func() {
					places <- struct{}{}
					defer func() { <-places }()
					trial = g.run(t, daemon, fmt.Sprintf("adversarial-%d-%d", os.Getpid(), i), func(o outcome) {
						mu.Lock()
						defer mu.Unlock()
						outcomes = append(outcomes, o)
						fmt.Println(o)
					})
				}()
				g.end(t, trial)
			})
		}
	})
	failed := 0
	for _, o := range outcomes {
		if len(o.failures) > 0 {
			failed++
		}
	}
	fmt.Printf("%d cases, %d failed, %.0fs\n", len(outcomes), failed, time.Since(begun).Seconds())
	require.Empty(t, planted.canary.Found(), "a secret got out")
}

// group are the cases of one service.
type group struct {
	settings map[string]string
	cases    []Case
}

func (g *group) name() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(g.settings)) {
		words = append(words, name+"="+filepath.Base(g.settings[name]))
	}
	if len(words) == 0 {
		return "defaults"
	}
	return strings.Join(words, ",")
}

// groupMost is how many cases one service takes: several services share what would
// be one long line.
const groupMost = 12

// groups puts cases with equal settings together, the largest group first.
func groups(all []Case) []*group {
	var out []*group
	for _, c := range all {
		i := slices.IndexFunc(out, func(g *group) bool { return len(g.cases) < groupMost && maps.Equal(g.settings, c.Settings) })
		if i < 0 {
			out = append(out, &group{settings: c.Settings})
			i = len(out) - 1
		}
		out[i].cases = append(out[i].cases, c)
	}
	slices.SortStableFunc(out, func(a, b *group) int { return len(b.cases) - len(a.cases) })
	return out
}

// run starts the service and sends the group's cases one after another.
func (g *group) run(t *testing.T, daemon *Daemon, id string, tell func(outcome)) *Trial {
	trial := g.start(t, daemon, id)
	for _, c := range g.cases {
		t.Run(c.ID, func(t *testing.T) {
			o := try(t.Context(), c, *trial)
			tell(o)
			require.Empty(t, o.failures, "%s, %s", c.ID, c.Title)
		})
	}
	return trial
}

// start starts the service and looks at what it holds.
func (g *group) start(t *testing.T, daemon *Daemon, id string) *Trial {
	folder := filepath.Join(planted.folder, id)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "state"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "state", "secret"), []byte(planted.beside), 0o600))
	s, err := StartService(planted.program, folder, id, g.settings, planted.env)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) }) // if the test fails before its end
	keys, err := os.ReadFile(filepath.Join(folder, "state", "link-keys"))
	require.NoError(t, err)
	planted.canary.Watch("the links' keys", strings.TrimSpace(string(keys)))

	client := &Client{URL: s.URL, Seen: seen}
	known, err := daemon.Follow(t.Context(), id)
	require.NoError(t, err)
	start := atStart(t, s, daemon, client, known)
	return &Trial{Service: s, Daemon: daemon, Client: client, Checks: checks(), Known: known, Start: start}
}

func seen(a *Answer) {
	planted.canary.SearchAnswer(a)
	if *show {
		fmt.Printf("    HTTP %d after %v: %s\n", a.Status, a.Took, shown(string(a.Body)))
	}
}

// atStart returns what the service holds when it has had a run of each kind and
// its pool is full: what is made once is no leak.
func atStart(t *testing.T, s *Service, d *Daemon, client *Client, known *Known) *Holdings {
	trial := Trial{Service: s, Daemon: d, Client: client, Known: known, load: measureLoad()}
	defer trial.load.stop()
	beside, err := beginNeighbour(t.Context(), s.URL)
	require.NoError(t, err)
	require.NoError(t, trial.next(t.Context()))
	require.NoError(t, beside.end(t.Context()))
	// What has no limit yet: only the number of sandboxes must be right.
	most := Holdings{Descriptors: 1 << 20, Goroutines: 1 << 20, Resident: 1 << 50, Peak: 1 << 50}
	require.NoError(t, s.Settled(t.Context(), d, known, &most, true))
	start, err := s.Look(t.Context(), d, known)
	require.NoError(t, err)
	return &start
}

// try runs a case and says how it went.
func try(ctx context.Context, c Case, trial Trial) outcome {
	begun := time.Now()
	result := trial.Run(ctx, &c)
	o := outcome{id: c.ID, took: time.Since(begun), again: result.Again, here: c.Here}
	for _, f := range result.Failures {
		o.failures = append(o.failures, f.Text)
	}
	return o
}

// end sees that the service holds no more than at its start, stops it and searches
// all that it leaves for the secrets.
func (g *group) end(t *testing.T, trial *Trial) {
	s, client := trial.Service, trial.Client
	// The client keeps two connections for as long as Settled waits: they are not the service's.
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	require.NoError(t, s.Settled(t.Context(), trial.Daemon, trial.Known, trial.Start, true), "after all requests")
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/v1/environments", "/openapi.json", "/docs"} {
		_, err := client.Send(t.Context(), &Request{Method: "GET", Path: path}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, s.Stop(t.Context()))
	left, err := trial.Daemon.Containers(t.Context(), s.ID)
	require.NoError(t, err)
	require.Empty(t, left, "containers after the service's end")
	require.NoError(t, planted.canary.SearchFiles("the log", s.Log()))
	require.NoError(t, planted.canary.SearchFiles("the store", filepath.Join(s.Folder, "files")))
}
