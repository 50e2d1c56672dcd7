package faults_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestG10ClockJumps sets the service's clock an hour on and back in mid-run, and
// looks at everything that goes by it.
func TestG10ClockJumps(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			c := new(clock)
			l := newLibrary(t, c, nil)
			before := l.run("open('old.txt', 'w').write('old')").reply(t)
			require.Equal(t, []string{"old.txt"}, before.stored())
			async := l.accept(`{"code": "import time\nprint('started', flush=True)\ntime.sleep(6)\nprint('ended')", "timeout": 300}`)

			const limit = 3
			begun := time.Now()
			late := make(chan answer, 1)
			go func() {
				late <- l.runJSON(fmt.Sprintf(`{"code": "print('started', flush=True)\nwhile True: pass", "timeout": %d}`, limit))
			}()
			time.Sleep(time.Second)
			c.jump(by)

			// A time limit is of a clock that does not jump: neither early nor late.
			r := (<-late).reply(t)
			require.Equal(t, "timeout", r.Status)
			require.Contains(t, r.Text, "started\n")
			require.GreaterOrEqual(t, time.Since(begun), limit*time.Second)

			// What goes on is not taken for dead, and ends as it would.
			eventually(t, "the asynchronous run has ended", func() bool {
				a := send(http.MethodGet, l.url+async, "", nil)
				require.Equal(t, http.StatusOK, a.status, "%s", a.body)
				return a.reply(t).Status == "ok"
			})
			require.Contains(t, send(http.MethodGet, l.url+async, "", nil).reply(t).Text, "started\nended\n")

			// An hour is no reason for a link to end, and 24 more are.
			url := before.url("old.txt")
			require.Equal(t, "old", string(send(http.MethodGet, url, "", nil).body))
			c.jump(25 * time.Hour)
			require.Equal(t, http.StatusForbidden, send(http.MethodGet, url, "", nil).status)
			c.jump(-25 * time.Hour)
			require.Equal(t, http.StatusOK, send(http.MethodGet, url, "", nil).status)

			l.requireReady(http.StatusOK)
			after := l.run("open('new.txt', 'w').write('new')").reply(t)
			require.Equal(t, "new", string(send(http.MethodGet, after.url("new.txt"), "", nil).body))
		})
	}
}

// accept has it run what a request in JSON says without waiting, and returns where to
// ask for it.
func (l *library) accept(body string) string {
	l.t.Helper()
	a := send(http.MethodPost, l.url+"/v1/execute", "application/json", []byte(body), "Prefer: respond-async")
	require.NoError(l.t, a.err)
	require.Equal(l.t, http.StatusAccepted, a.status)
	return a.header.Get("Location")
}
