package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
	"notebox/server/web"
	"notebox/storage"
)

// Where calls are.
const (
	sessionsPath = "/v1/sessions"
	sessionPath  = sessionsPath + "/:id"
	filesPrefix  = "/v1/files/"
	mcpPath      = "/mcp"
)

// runFunc is a runner.Runner that does what a test wants.
type runFunc func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error)

func (f runFunc) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	return f(ctx, spec, events)
}

// service is a whole server on a real port, with a fake runner behind it.
type service struct {
	t      *testing.T
	url    string
	server *Server
	client http.RoundTripper
	temp   string
	logged *syncBuffer

	mu   sync.Mutex
	runs []runner.Spec
	run  runFunc
}

var (
	python = environments.Environment{
		Name: "jupyter", Language: "python", Aliases: []string{"py"}, DisplayName: "Python 3", Kernel: environments.Kernel{Name: "python3"},
		Image: "registry.internal/jupyter:secret-digest", FileExtension: ".py", Entrypoint: "run({path}, {shell})", MediaTypes: []string{"text/x-python"},
		Packages: []environments.Package{{Name: "numpy", Version: "2.0"}, {Name: "pandas", Version: "3.0"}},
		Notes:    []string{"No corpora."},
	}
	rLang = environments.Environment{Name: "r", Language: "r", DisplayName: "R", Kernel: environments.Kernel{Name: "ir"}, Image: "r:1", FileExtension: ".R", MediaTypes: []string{"text/x-r"}}
)

// newService starts one whose runs end well, with no output, unless run is set.
func newService(t *testing.T, change ...func(*Config)) *service {
	s := &service{t: t, client: http.DefaultTransport, temp: t.TempDir(), logged: new(syncBuffer)}
	store, err := storage.Open(context.Background(), storage.Options{URL: "mem://"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	cfg := Config{
		Runner: runFunc(func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
			s.mu.Lock()
			s.runs = append(s.runs, spec)
			run := s.run
			s.mu.Unlock()
			if run == nil {
				return executed(spec, runner.StatusOK), nil
			}
			return run(ctx, spec, events)
		}),
		Store:        store,
		Environments: []environments.Environment{python, rLang},
		TempDir:      s.temp,
		Log:          slog.New(slog.NewTextHandler(s.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&cfg)
	}
	s.server, err = New(cfg)
	require.NoError(t, err)
	ts := httptest.NewUnstartedServer(nil)
	if cfg.ListenAddr == memoryAddr {
		_ = ts.Listener.Close()
		network := newMemory()
		transport := network.transport()
		t.Cleanup(transport.CloseIdleConnections)
		ts.Listener, s.client = network, transport
	}
	ts.Config = s.server.HTTPServer()
	ts.Start()
	t.Cleanup(func() { require.NoError(t, s.server.Close()) })
	t.Cleanup(ts.Close)
	s.url = ts.URL
	return s
}

// executed is the outcome of a run whose first cell has these outputs.
func executed(spec runner.Spec, status runner.Status, outputs ...string) *runner.Outcome {
	book := strings.Replace(string(spec.Notebook), `"outputs":[]`, `"outputs":[`+strings.Join(outputs, ",")+`]`, 1)
	return &runner.Outcome{Status: status, Notebook: []byte(book), Usage: runner.Usage{
		Queue: time.Millisecond, Wall: 12 * time.Millisecond, CPU: 9 * time.Millisecond, PeakMemory: 81e6,
	}}
}

func stdout(text string) string {
	raw, _ := json.Marshal(map[string]string{"output_type": "stream", "name": "stdout", "text": text})
	return string(raw)
}

func raised(name, message string) string {
	raw, _ := json.Marshal(map[string]any{"output_type": "error", "ename": name, "evalue": message,
		"traceback": []string{name + ": " + message}})
	return string(raw)
}

type answer struct {
	*http.Response
	body []byte
}

func (s *service) do(req *http.Request) answer {
	s.t.Helper()
	resp, err := s.client.RoundTrip(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp, body}
}

func (s *service) request(method, path, contentType string, body io.Reader) *http.Request {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, body)
	require.NoError(s.t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req
}

func (s *service) get(path string) answer {
	s.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = s.url + path
	}
	req, err := http.NewRequest(http.MethodGet, path, nil)
	require.NoError(s.t, err)
	return s.do(req)
}

func (s *service) post(path, contentType, body string) answer {
	s.t.Helper()
	return s.do(s.request(http.MethodPost, path, contentType, strings.NewReader(body)))
}

func (s *service) postJSON(body string) answer {
	s.t.Helper()
	return s.post("/v1/execute", "application/json", body)
}

// replied is the reply of a run; every run in a test of ours is answered 200.
func (s *service) replied(a answer) replyJSON {
	s.t.Helper()
	require.Equal(s.t, http.StatusOK, a.StatusCode, "%s", a.body)
	require.Equal(s.t, "application/json", a.Header.Get("Content-Type"))
	var r replyJSON
	require.NoError(s.t, json.Unmarshal(a.body, &r))
	return r
}

// requireProblem checks an error answer, and that no run was started.
func (s *service) requireProblem(a answer, status int, detail string) {
	s.t.Helper()
	require.Equal(s.t, status, a.StatusCode, "%s", a.body)
	require.Equal(s.t, "application/problem+json", a.Header.Get("Content-Type"))
	var p web.ProblemBody
	require.NoError(s.t, json.Unmarshal(a.body, &p), "%s", a.body)
	require.Equal(s.t, status, p.Status)
	require.Equal(s.t, http.StatusText(status), p.Title)
	require.Equal(s.t, "about:blank", p.Type)
	require.Contains(s.t, p.Detail, detail)
	require.Empty(s.t, s.started(), "a run was started")
	s.requireNoFiles()
}

// requireNoFiles checks that no request left a temporary file.
func (s *service) requireNoFiles() {
	s.t.Helper()
	entries, err := os.ReadDir(s.temp)
	require.NoError(s.t, err)
	require.Empty(s.t, entries)
}

func (s *service) started() []runner.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]runner.Spec(nil), s.runs...)
}

// only is the one run that was started.
func (s *service) only() runner.Spec {
	s.t.Helper()
	runs := s.started()
	require.Len(s.t, runs, 1)
	return runs[0]
}

// sources are the cells of a run's notebook.
func sources(t *testing.T, spec runner.Spec) []string {
	t.Helper()
	var book struct {
		Cells []struct{ Source string }
	}
	require.NoError(t, json.Unmarshal(spec.Notebook, &book))
	var out []string
	for _, c := range book.Cells {
		out = append(out, c.Source)
	}
	return out
}

// replyJSON is a reply as a caller reads it.
type replyJSON struct {
	ID        string
	Status    string
	Text      string
	Outputs   []map[string]any
	Images    []map[string]any
	Files     []map[string]any
	Skipped   []executor.Skipped
	Error     map[string]any
	Hint      string
	Notebook  struct{ URL string }
	Truncated bool
	Session   *executor.SessionRef
	ExitCode  *int `json:"exit_code"`
	Usage     map[string]int64
}

// syncBuffer is a log that goroutines write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// readInputs reads the inputs of a run, as a sandbox would, while it runs.
func readInputs(spec runner.Spec) (map[string]string, error) {
	out := map[string]string{}
	for _, in := range spec.Inputs {
		f, err := in.Open()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		if int64(len(raw)) != in.Size {
			return nil, fmt.Errorf("%s has %d bytes, not %d", in.Path, len(raw), in.Size)
		}
		out[in.Path] = string(raw)
	}
	return out, nil
}
