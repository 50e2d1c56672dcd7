package operation

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/doctor"
	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

// diagnosis calls notebox doctor --json in an empty folder.
func diagnosis(t *testing.T, environ []string, flags ...string) (r doctor.Report, code int) {
	t.Helper()
	program, err := starter.Notebox()
	require.NoError(t, err)
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, append([]string{"doctor", "--json", "--listen", "127.0.0.1:0"}, flags...)...)
	c.Dir = home
	settings := func(v string) bool { return strings.HasPrefix(v, "NOTEBOX_") }
	c.Env = append(slices.DeleteFunc(os.Environ(), settings), "HOME="+home, "XDG_STATE_HOME="+home+"/state", "XDG_DATA_HOME="+home+"/data")
	c.Env = append(c.Env, environ...)
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
		require.Equal(t, "notebox: no run works here\n", string(exit.Stderr))
	}
	require.NoError(t, json.Unmarshal(out, &r), string(out))
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left, "doctor leaves nothing")
	return r, c.ProcessState.ExitCode()
}

func line(t *testing.T, r doctor.Report, name string) doctor.Line {
	t.Helper()
	for _, l := range r.Checks {
		if l.Check == name {
			return l
		}
	}
	t.Fatalf("no check %s: %+v", name, r)
	return doctor.Line{}
}

// TestDoctor: each fault is named with its mend, and the exit status says whether a run works.
func TestDoctor(t *testing.T) {
	t.Run("all is well", func(t *testing.T) {
		r, code := diagnosis(t, nil)
		require.Zero(t, code)
		require.True(t, r.Works)
		require.Zero(t, r.Count(doctor.Wrong)+r.Count(doctor.Skipped), "%+v", r)
		require.Regexp(t, `^print\(42\) ran in a (cell|container): `, line(t, r, "run").Message)
		require.Empty(t, service.Containers(t, "notebox-doctor"))
	})
	t.Run("in containers", func(t *testing.T) {
		r, code := diagnosis(t, []string{"NOTEBOX_ISOLATION=container"})
		require.Zero(t, code)
		require.Contains(t, line(t, r, "run").Message, "print(42) ran in a container: ")
		require.Equal(t, doctor.OK, line(t, r, "isolation").Level)
		require.Contains(t, line(t, r, "isolation").Message, "Code in one is not root, has no capabilities, no network")
		require.Empty(t, service.Containers(t, "notebox-doctor"))
	})
	t.Run("beside a service", func(t *testing.T) {
		s := service.Start(t, "doctor")
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		r, code := diagnosis(t, nil, "--listen", u.Host)
		require.Zero(t, code)
		require.Contains(t, line(t, r, "port").Message, "a notebox answers")
		answer := service.Ask(t, http.MethodPost, s.URL+"/v1/execute", `{"code": "print(6*7)"}`)
		require.Equal(t, http.StatusOK, answer.Status)
	})
	t.Run("the daemon is stopped", func(t *testing.T) {
		r, code := diagnosis(t, []string{"DOCKER_HOST=unix://" + t.TempDir() + "/none.sock"})
		require.Equal(t, 1, code)
		require.Equal(t, doctor.Wrong, line(t, r, "engine").Level)
		require.Contains(t, line(t, r, "engine").Mend, "systemctl start docker")
		require.Equal(t, doctor.Skipped, line(t, r, "run").Level)
		require.Equal(t, 1, r.Count(doctor.Wrong), "one fault is one line: %+v", r)
	})
	t.Run("no image", func(t *testing.T) {
		r, code := diagnosis(t, nil, "--image", "notebox/none:1")
		require.Equal(t, 1, code)
		require.Contains(t, line(t, r, "image jupyter").Mend, "notebox image build --tag notebox/none:1 jupyter")
		require.Equal(t, 1, r.Count(doctor.Wrong), "%+v", r)
	})
	t.Run("storage is down", func(t *testing.T) {
		r, code := diagnosis(t, []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}, "--storage", "s3://b?region=x&endpoint=http://"+deadAddress(t))
		require.Equal(t, 1, code)
		require.Equal(t, doctor.Wrong, line(t, r, "storage").Level)
		require.Equal(t, doctor.OK, line(t, r, "run").Level)
	})
	t.Run("a port in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		r, code := diagnosis(t, nil, "--listen", l.Addr().String())
		require.Zero(t, code, "a run works")
		require.Equal(t, doctor.Wrong, line(t, r, "port").Level)
		require.Contains(t, line(t, r, "port").Mend, "--listen")
	})
	t.Run("a wrong clock", func(t *testing.T) {
		r, code := diagnosis(t, []string{"DOCKER_HOST=" + lateDaemon(t)})
		require.Zero(t, code, "a run works: %+v", r)
		require.Equal(t, doctor.Wrong, line(t, r, "clock").Level)
		require.Regexp(t, `the daemon's clock is 1h0m\ds behind this machine's`, line(t, r, "clock").Message)
		require.Contains(t, line(t, r, "clock").Mend, "NTP")
	})
	t.Run("settings that cannot be meant", func(t *testing.T) {
		r, code := diagnosis(t, []string{"NOTEBOX_MAX_BDY=1"}, "--pids", "0")
		require.Equal(t, 1, code)
		require.Contains(t, line(t, r, "settings").Message, "--pids")
		r, code = diagnosis(t, []string{"NOTEBOX_MAX_BDY=1"})
		require.Zero(t, code)
		require.Contains(t, line(t, r, "settings").Message, "NOTEBOX_MAX_BODY")
	})
}

func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// lateDaemon is the real one, whose clock is an hour late.
func lateDaemon(t *testing.T) string {
	t.Helper()
	socket := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if socket == "" {
		socket = "/var/run/docker.sock"
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "docker"})
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}},
		ModifyResponse: func(res *http.Response) error {
			if !strings.HasSuffix(res.Request.URL.Path, "/info") {
				return nil
			}
			var info map[string]json.RawMessage
			if err := json.NewDecoder(res.Body).Decode(&info); err != nil {
				return err
			}
			info["SystemTime"], _ = json.Marshal(time.Now().Add(-time.Hour).Format(time.RFC3339Nano))
			raw, err := json.Marshal(info)
			res.Body = io.NopCloser(strings.NewReader(string(raw)))
			res.ContentLength = int64(len(raw))
			res.Header.Del("Content-Length")
			return err
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String()
}
