package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/server/web"
)

func TestRequestBecomesSpec(t *testing.T) {
	fields := `{"language":"PY","timeout":1.5,"stop_on_error":false,"env":{"A_1":"x","B":""},"network":false,"dependencies":[],"session":null,`
	for _, c := range []struct {
		desc, body string
		want       []string
	}{
		{"code", fields + `"code":"print(1)"}`, []string{"print(1)"}},
		{"cells", fields + `"cells":["a","","b"],"code":null}`, []string{"a", "", "b"}},
		{"notebook", fields + `"notebook":{"nbformat":4,"nbformat_minor":5,"metadata":{"kernelspec":{"name":"python3","display_name":"x","language":"python"}},
			"cells":[{"cell_type":"code","id":"a","metadata":{},"source":"z","outputs":[],"execution_count":null}]}}`, []string{"z"}},
		{"NUL, an emoji as surrogates, markers", `{"code":"a\u0000b\ud83d\ude00]}\u2028"`, nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			if c.want == nil {
				s.replied(s.postJSON(c.body + "}"))
				require.Equal(t, []string{"a\x00b😀]}\u2028"}, sources(t, s.only()))
				return
			}
			s.replied(s.postJSON(c.body))
			spec := s.only()
			require.Equal(t, c.want, sources(t, spec))
			require.Equal(t, 1500*time.Millisecond, spec.Limits.Timeout)
			require.False(t, spec.StopOnError)
			require.Equal(t, map[string]string{"A_1": "x", "B": ""}, spec.Env)
			require.Equal(t, executor.EnvironmentOf(python), spec.Environment)
		})
	}
}

func TestRawCode(t *testing.T) {
	s := newService(t)
	code := "print('\x00 ü')\r\n\ufeff"
	s.replied(s.post("/v1/execute?timeout=7&stop_on_error=false", "text/x-python; charset=UTF-8", code))
	spec := s.only()
	require.Equal(t, []string{code}, sources(t, spec))
	require.Equal(t, 7*time.Second, spec.Limits.Timeout)
	require.False(t, spec.StopOnError)
	require.Equal(t, "jupyter", spec.Environment.Name)
}

func TestLanguageOfTheRequest(t *testing.T) {
	book := `{"notebook":{"nbformat":4,"metadata":{"kernelspec":{"name":"ir","language":"R"}},"cells":[{"cell_type":"code","source":"1"}]}`
	for _, c := range []struct{ desc, path, mediaType, body, want string }{
		{"default", "/v1/execute", "application/json", `{"code":"1"}`, "jupyter"},
		{"field", "/v1/execute", "application/json", `{"code":"1","language":"R"}`, "r"},
		{"media type", "/v1/execute", "text/x-r", `1`, "r"},
		{"query", "/v1/execute?language=r", "text/plain", `1`, "r"},
		{"notebook", "/v1/execute", "application/json", book + "}", "r"},
		{"notebook alone", "/v1/execute?timeout=5", "application/x-ipynb+json", `{"nbformat":4,"metadata":{"kernelspec":{"name":"ir","language":"R"}},"cells":[{"cell_type":"code","source":"1"}]}`, "r"},
		{"notebook of nbformat 3", "/v1/execute", "application/x-ipynb+json", `{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"code","input":"1","language":"R"}]}]}`, "r"},
		{"notebook and field agree", "/v1/execute", "application/json", book + `,"language":"r"}`, "r"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.replied(s.post(c.path, c.mediaType, c.body))
			require.Equal(t, c.want, s.only().Environment.Name)
			require.Equal(t, []string{"1"}, sources(t, s.only()))
		})
	}
}

func TestRunnerErrors(t *testing.T) {
	secret := errors.New("dial unix /var/run/docker.sock: sha256:abcdef")
	for _, c := range []struct {
		desc   string
		err    error
		status int
		retry  string
		detail string
	}{
		{"full", &runner.Error{Code: runner.CodeFull, Message: "too many runs are waiting", RetryAfter: 1500 * time.Millisecond}, 503, "2", "too many runs are waiting"},
		{"share", fmt.Errorf("run: %w", &runner.Error{Code: runner.CodeShare, Message: "too many runs of this caller are waiting", RetryAfter: time.Minute}), 429, "60", "too many runs of this caller are waiting"},
		{"unavailable", &runner.Error{Code: runner.CodeUnavailable, Message: "sandboxes cannot be started", Err: secret}, 503, "1", "sandboxes cannot be started"},
		{"wrapped", fmt.Errorf("run: %w", &runner.Error{Code: runner.CodeUnavailable, Message: "no image", Err: secret}), 503, "1", "no image"},
		{"env", fmt.Errorf("run: %w", &runner.Error{Code: runner.CodeEnv, Message: "the kernel does not start", Err: secret}), 422, "", "env: the kernel does not start"},
		{"a deadline that is not the client's", fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, secret), 500, "", "the service failed; its log says why"},
		{"other", secret, 500, "", "the service failed; its log says why"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.run = func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) { return nil, c.err }
			a := s.postJSON(`{"code":"my_secret_code()"}`)
			require.Equal(t, c.status, a.StatusCode)
			require.Equal(t, c.retry, a.Header.Get("Retry-After"))
			require.NotContains(t, string(a.body), "docker")
			var p web.ProblemBody
			require.NoError(t, json.Unmarshal(a.body, &p))
			require.Equal(t, c.detail, p.Detail)
			if errors.Is(c.err, secret) {
				require.Contains(t, s.logged.String(), "docker.sock")
			}
			require.Contains(t, s.logged.String(), "run="+s.only().ID)
			require.NotContains(t, s.logged.String(), "my_secret_code")
		})
	}
}

func TestPanicIsA500(t *testing.T) {
	s := newService(t)
	s.run = func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) { panic("boom") }
	a := s.postJSON(`{"code":"x"}`)
	require.Equal(t, 500, a.StatusCode)
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	require.NotContains(t, string(a.body), "boom")
	require.NotContains(t, string(a.body), "goroutine")
	require.NotContains(t, s.logged.String(), "boom", "which may be a caller's")
	require.Contains(t, s.logged.String(), "execute_test.go", "the stack is there")
	s.requireNoFiles()
	s.run = nil
	require.Equal(t, 200, s.postJSON(`{"code":"x"}`).StatusCode)
}

func TestClientThatLeavesCancelsItsRun(t *testing.T) {
	for _, form := range []string{"application/json", "text/plain", "multipart/form-data; boundary=b"} {
		t.Run(form, func(t *testing.T) {
			s := newService(t)
			started, over := make(chan struct{}), make(chan error, 1)
			s.run = func(ctx context.Context, _ runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
				close(started)
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Second):
				}
				over <- ctx.Err()
				return &runner.Outcome{Status: runner.StatusCancelled}, nil
			}
			body := `{"code":"x"}`
			if strings.HasPrefix(form, "multipart") {
				body = "--b\r\nContent-Disposition: form-data; name=\"code\"\r\n\r\nx\r\n--b--\r\nepilogue"
			}
			ctx, leave := context.WithCancel(context.Background())
			req := s.request(http.MethodPost, "/v1/execute", form, strings.NewReader(body)).WithContext(ctx)
			go func() {
				<-started
				leave()
			}()
			_, err := http.DefaultTransport.RoundTrip(req)
			require.Error(t, err)
			require.ErrorIs(t, <-over, context.Canceled)
			require.Eventually(t, func() bool {
				entries, _ := os.ReadDir(s.temp)
				return len(entries) == 0 && strings.Contains(s.logged.String(), "status=499")
			}, time.Minute, 5*time.Millisecond)
		})
	}
}

func TestCancelRunsAnswersThem(t *testing.T) {
	s := newService(t)
	started := make(chan struct{})
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		close(started)
		<-ctx.Done()
		return executed(spec, runner.StatusCancelled, stdout("so far\n")), nil
	}
	go func() {
		<-started
		s.server.CancelRuns()
	}()
	r := s.replied(s.postJSON(`{"code":"x"}`))
	require.Equal(t, "cancelled", r.Status)
	require.Equal(t, "so far\n", r.Text)
	require.Contains(t, string(s.get(r.Notebook.URL).body), "so far")

	s.run = func(ctx context.Context, _ runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a := s.postJSON(`{"code":"x"}`)
	require.Equal(t, 503, a.StatusCode)
	require.Contains(t, string(a.body), "the service is ending")
}

func TestRunIDsSortAndDiffer(t *testing.T) {
	now := time.Now()
	a, err := executor.NewID("run_", now)
	require.NoError(t, err)
	b, err := executor.NewID("run_", now)
	require.NoError(t, err)
	later, err := executor.NewID("run_", now.Add(time.Millisecond))
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	require.Less(t, a, later)
	require.Less(t, b, later)
}

func TestLogsHoldNoCodeAndNoSignature(t *testing.T) {
	s := newService(t)
	r := s.replied(s.postJSON(`{"code":"password = 'hunter2'","env":{"TOKEN":"hunter3"}}`))
	require.Equal(t, 200, s.get(r.Notebook.URL).StatusCode)
	require.Equal(t, 403, s.get(r.Notebook.URL+"x").StatusCode)
	log := s.logged.String()
	require.Contains(t, log, "run="+r.ID)
	require.NotContains(t, log, "hunter")
	require.NotContains(t, log, "signature=")
	require.NotContains(t, log, "notebook.ipynb")
}
