package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner/docker"
)

// The tests of this package run the real program with real containers: they
// need a Docker daemon and the sandbox image, which `make test` brings.

// suite is what the tests share: one service, and its folder.
var suite struct {
	folder  string
	program *program
	stop    func() error
}

// serviceID of the shared service. The others of these tests have ids that begin
// with it: a service removes what carries its own id when it starts.
var serviceID = fmt.Sprintf("test-%d", os.Getpid())

// withoutContainers are the tests that -short has, which is how make check calls them.
const withoutContainers = "^(TestConformanceComparison|TestConformanceRules|TestDependencyLimits|TestDependencySettings|" +
	"TestDocumentsNameTheProgram|TestEnvironmentsDocumentHasEveryField|TestExitStatuses|TestHoldings|" +
	"TestHostSettings|TestHostWarnings|TestInstalled|TestKey|TestKeyInFile|TestMisspeltVariables|TestParseDotenv|" +
	"TestPromisesAreHeld|TestRetentionIsAsLongAsLinksWork|TestSessionFlags|TestUserRange)$"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if testing.Short() {
			if err := flag.Set("test.run", withoutContainers); err != nil {
				panic(err)
			}
			return m.Run()
		}
		if err := openSuite(); err != nil {
			fmt.Fprintln(os.Stderr, "run `make test`, which brings what the tests need:", err)
			return 1
		}
		code := m.Run()
		if code != 0 {
			printErrors(suite.folder + "/log")
		}
		if err := closeSuite(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: left behind after the tests:", err)
			return 1
		}
		return code
	}())
}

// printErrors shows what the service had to say about a test that failed.
func printErrors(log string) {
	raw, _ := os.ReadFile(log)
	for line := range strings.Lines(string(raw)) {
		if !strings.Contains(line, "level=INFO") {
			fmt.Fprint(os.Stderr, line)
		}
	}
}

func openSuite() (err error) {
	if suite.folder, err = os.MkdirTemp("", "notebox-test-"); err != nil {
		return err
	}
	suite.program, suite.stop, err = start(suite.folder)
	return err
}

// closeSuite ends the service and reports what it did not clean up.
func closeSuite() error {
	if err := suite.stop(); err != nil {
		return err
	}
	engine, err := docker.New(docker.Options{ServiceID: serviceID, Log: slog.Default()})
	if err != nil {
		return err
	}
	if err := errors.Join(removeImages(engine.Images()), engine.Close(context.Background())); err != nil {
		return fmt.Errorf("layers: %w", err)
	}
	left, err := containers()
	if err != nil || left != "" {
		return fmt.Errorf("containers: %s %v", left, err)
	}
	uploads, err := os.ReadDir(suite.folder + "/state/uploads")
	if err != nil || len(uploads) > 0 {
		return fmt.Errorf("uploads: %v, %v", uploads, err)
	}
	return os.RemoveAll(suite.folder)
}

// start boots a service below folder on a free port; stop ends it as SIGTERM
// would. It has the shared service's id, unless flags say otherwise.
func start(folder string, flags ...string) (p *program, stop func() error, err error) {
	return startWith(folder, func(*settings) {}, flags...)
}

// startWith is start with settings that are no flags.
func startWith(folder string, change func(*settings), flags ...string) (p *program, stop func() error, err error) {
	var s settings
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	s.register(set)
	err = set.Parse(append([]string{
		"--listen", "127.0.0.1:0",
		"--service-id", serviceID,
		"--state-dir", folder + "/state",
		"--storage", "file://" + folder + "/files",
		"--max-waiting", "100",
		"--max-wait", "5m",
		"--model", "off",
	}, flags...))
	if err != nil {
		return nil, nil, err
	}
	change(&s)
	log, err := os.OpenFile(folder+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	p, err = newProgram(context.Background(), s, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	return p, func() error {
		cancel()
		err := <-ended
		if e := p.close(); err == nil {
			err = e
		}
		log.Close()
		return err
	}, nil
}

func (p *program) url() string { return "http://" + p.listener.Addr().String() }

// containers lists what these tests' services have on the daemon.
func containers() (string, error) {
	out, err := exec.Command("docker", "ps", "-a", "--filter", "label=notebox.service", "--format", `{{.Label "notebox.service"}} {{.Names}} {{.Status}}`).Output()
	var ours []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, serviceID) {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, ""), err
}

// reply is api.md's reply, with every field by its name.
type reply struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Text     string   `json:"text"`
	Outputs  []output `json:"outputs"`
	Images   []image  `json:"images"`
	Files    []file   `json:"files"`
	Skipped  []skipped
	Error    *exception `json:"error"`
	Hint     string     `json:"hint"`
	Notebook struct{ URL string }
	Session  *struct {
		ID              string    `json:"id"`
		ExpiresAt       time.Time `json:"expires_at"`
		KernelRestarted bool      `json:"kernel_restarted"`
	} `json:"session"`
	Install *struct {
		Packages []struct{ Name, Version string }
		Seconds  float64
		Cached   bool
	} `json:"install"`
	ExitCode  *int `json:"exit_code"`
	Truncated bool `json:"truncated"`
	Usage     struct {
		QueueMS         int64 `json:"queue_ms"`
		WallMS          int64 `json:"wall_ms"`
		CPUMS           int64 `json:"cpu_ms"`
		PeakMemoryBytes int64 `json:"peak_memory_bytes"`
	} `json:"usage"`
}

type output struct {
	Cell      int                        `json:"cell"`
	Type      string                     `json:"type"`
	Name      string                     `json:"name"`
	Text      string                     `json:"text"`
	Message   string                     `json:"message"`
	Traceback string                     `json:"traceback"`
	Data      map[string]json.RawMessage `json:"data"`
}

type skipped struct {
	Path, Reason string
	Retry        bool
}

type image struct {
	Name          string
	MediaType     string `json:"media_type"`
	Bytes         int
	Width, Height int
	URL           string
	Data          []byte // base64 in JSON
	Error         string
	Retry         bool
}

type file struct {
	Path, Name string
	MediaType  string `json:"media_type"`
	Bytes      int
	SHA256     string
	URL        string
	ExpiresAt  time.Time `json:"expires_at"`
	Error      string
	Retry      bool
}

type exception struct {
	Name, Message, Traceback string
	Cell, Line               int
}

// execute posts a request as JSON to the shared service.
func execute(t *testing.T, request map[string]any) reply {
	t.Helper()
	return executeOn(t, suite.program, request)
}

func executeOn(t *testing.T, p *program, request map[string]any) reply {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	status, raw := post(t, p.url()+"/v1/execute", "application/json", body)
	require.Equal(t, http.StatusOK, status, "%s", raw)
	var r reply
	decode(t, raw, &r)
	return r
}

// decode is strict: a field of the reply that these tests do not know fails.
func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(into), "%s", raw)
}

func post(t *testing.T, url, contentType string, body []byte) (int, []byte) {
	t.Helper()
	a := mustAsk(t, http.MethodPost, url, string(body), "Content-Type: "+contentType)
	return a.status, a.body
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, raw
}

// sandboxImage is the image that belongs to this program.
func sandboxImage(t *testing.T) string {
	t.Helper()
	all, err := environments.Load("")
	require.NoError(t, err)
	return all[0].Image
}
