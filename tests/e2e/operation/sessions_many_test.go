package operation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

const (
	// someSessions are enough to fill a service; with NOTEBOX_TEST_LARGE it is
	// manySessions, which take 8 GB.
	someSessions = 6
	manySessions = 50
	// sessionsAtOnce are opened at one time: starts are work for all cores.
	sessionsAtOnce = 4
)

// openedSession is the answer to POST /v1/sessions, as far as these tests go.
type openedSession struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// openSession opens one that lives so long.
func openSession(p *service.Service, ttl time.Duration) (service.Answer, openedSession, error) {
	body := fmt.Sprintf(`{"ttl": %g}`, ttl.Seconds())
	a, err := service.TryAsk(http.MethodPost, p.URL+"/v1/sessions", body, "Content-Type: application/json")
	var s openedSession
	if err == nil && a.Status == http.StatusCreated {
		err = json.Unmarshal(a.Body, &s)
	}
	return a, s, err
}

// step runs code in a session.
func step(t *testing.T, p *service.Service, session, code string) service.Reply {
	t.Helper()
	return p.Execute(t, map[string]any{"session": session, "code": code, "timeout": 120})
}

// TestManySessions: a service that is full of sessions refuses the next one in clear
// words, serves single runs all the same, and is empty when their time is over.
func TestManySessions(t *testing.T) {
	t.Parallel()
	many := someSessions
	if os.Getenv("NOTEBOX_TEST_LARGE") != "" {
		many = manySessions
	}
	p := service.Start(t, "many", "--pool-size", "0", "--max-sessions", strconv.Itoa(many), "--session-idle", "24h")

	began := time.Now()
	_, first, err := openSession(p, time.Hour)
	require.NoError(t, err)
	// All are to be open at one time, however slow this host is at present.
	ttl := 15*time.Second + time.Duration(many)*2*time.Since(began)
	a, err := service.TryAsk(http.MethodDelete, p.URL+"/v1/sessions/"+first.ID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)

	ids, errs, places := make([]string, many), make(chan error, many), make(chan struct{}, sessionsAtOnce)
	var last time.Time
	for i := range many {
		places <- struct{}{}
		go func() {
			defer func() { <-places }()
			a, s, err := openSession(p, ttl)
			if err == nil && a.Status != http.StatusCreated {
				err = fmt.Errorf("%d: %s", a.Status, a.Body)
			}
			ids[i] = s.ID
			errs <- err
		}()
	}
	for range many {
		require.NoError(t, <-errs)
	}
	opened := time.Now()
	last = opened.Add(ttl)

	a, _, err = openSession(p, ttl)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), strconv.Itoa(many), "how many there may be")
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)

	for i, session := range ids {
		require.Equal(t, "ok", step(t, p, session, fmt.Sprintf("mine = %d", i)).Status)
	}
	require.Equal(t, "2\n", p.Execute(t, map[string]any{"code": "print(1 + 1)", "timeout": 120}).Text, "single runs have their own room")
	for i, session := range ids {
		require.Equal(t, fmt.Sprintf("%d\n", i), step(t, p, session, "print(mine)").Text)
	}
	require.True(t, time.Now().Before(last), "all of this within the sessions' time, of %s", ttl)
	t.Logf("%d sessions opened in %s, used until %s after", many, opened.Sub(began), time.Since(opened))

	require.Eventually(t, func() bool { return len(service.SandboxNames(t, p.ID)) == 0 }, time.Until(last)+2*time.Minute, 200*time.Millisecond)
	for _, session := range ids {
		a, err := service.TryAsk(http.MethodGet, p.URL+"/v1/sessions/"+session, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusGone, a.Status, "%s", a.Body)
	}
	for _, state := range []string{"warm", "starting", "running", "session", "removing"} {
		require.Zero(t, p.Sandboxes(t, state), state)
	}
	uploads, err := os.ReadDir(p.Folder + "/state/uploads")
	require.NoError(t, err)
	require.Empty(t, uploads)
	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, service.Containers(t, p.ID))
}
