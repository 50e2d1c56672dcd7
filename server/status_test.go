package server

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/pool"
	"notebox/server/status"
	"notebox/tests/browser"
)

func (s *service) statusOf(key string) (out status.Status) {
	s.t.Helper()
	a := s.call(http.MethodGet, "/v1/status", bearer(key)...)
	require.Equal(s.t, http.StatusOK, a.StatusCode, "%s", a.body)
	require.NoError(s.t, json.Unmarshal(a.body, &out))
	return out
}

// TestStatus: a caller sees the last hundred of its own runs, how each stands, and numbers of
// all.
func TestStatus(t *testing.T) {
	s := newService(t, withKeys(t, "alices", "bobs"), func(c *Config) {
		c.Pool = func() pool.Stats { return pool.Stats{Warm: 3, Sandboxes: 4} }
		c.Runs = func() (int, int) { return 1, 2 }
	})
	require.Equal(t, http.StatusUnauthorized, s.call(http.MethodGet, "/v1/status").StatusCode)
	runs := s.hold()
	going := s.accepted(s.do(s.with(`{"code":"x"}`, append(bearer("alices"), "Prefer", async)...)))
	<-runs.started
	now := s.statusOf("alices")
	require.Equal(t, []int{1, 2, 3, 4}, []int{*now.Running, *now.Waiting, now.Pool.Warm, now.Pool.Sandboxes})
	require.Len(t, now.Runs, 1)
	require.Equal(t, going, now.Runs[0].ID)
	require.Equal(t, "running", now.Runs[0].Status)
	require.Equal(t, "python", now.Runs[0].Language)
	close(runs.letGo)
	require.NoError(t, s.server.Wait(t.Context()))
	require.Equal(t, "ok", s.statusOf("alices").Runs[0].Status)
	require.EqualValues(t, 12, s.statusOf("alices").Runs[0].WallMS)

	s.mu.Lock()
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		if sources(t, spec)[0] == "full" {
			return nil, &runner.Error{Code: runner.CodeFull, Message: "full"}
		}
		return executed(spec, runner.StatusTimeout), nil
	}
	s.mu.Unlock()
	require.Equal(t, http.StatusServiceUnavailable, s.do(s.with(`{"code":"full"}`, bearer("alices")...)).StatusCode)
	require.Equal(t, "failed", s.statusOf("alices").Runs[0].Status)
	last := ""
	for range 105 {
		last = s.ran("alices", `{"code":"x"}`)
	}
	now = s.statusOf("alices")
	require.Len(t, now.Runs, 100)
	require.Equal(t, last, now.Runs[0].ID, "the newest first")
	require.Equal(t, "timeout", now.Runs[0].Status)
	require.Empty(t, s.statusOf("bobs").Runs)
}

// TestTheStatusPage is live, asks for the key that callers have, and shows no other's runs.
func TestTheStatusPage(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys(t, "alices", "bobs"), func(c *Config) {
		c.Pool = func() pool.Stats { return pool.Stats{Warm: 3, Sandboxes: 4} }
		c.Runs = func() (int, int) { return 1, 2 }
	})
	mine, others := s.ran("alices", `{"code":"x"}`), s.ran("bobs", `{"code":"y"}`)
	b := browser.New(t, 1100, 800)
	b.Do(chromedp.Navigate(s.url + "/status"))
	b.Until(`document.querySelector("#api-key") !== null`)
	b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), "alices\r"))
	b.Until(`document.querySelectorAll("#runs tr").length === 1`)
	require.Contains(t, browser.Eval[string](b, `document.body.innerText`), mine)
	require.NotContains(t, browser.Eval[string](b, `document.body.innerText`), others)
	require.Contains(t, browser.Eval[string](b, `document.querySelector("#now").innerText`), "Waiting\n2\nWarm\n3")
	newer := s.ran("alices", `{"code":"z"}`)
	b.Until(`document.querySelectorAll("#runs tr").length === 2`)
	require.Contains(t, browser.Eval[string](b, `document.querySelector("#runs tr").innerText`), newer)
	b.RequireAccessible()
	b.Shoot("status")
	b.Prefer("dark")
	b.Until(`document.documentElement.dataset.theme === "dark"`)
	b.RequireAccessible()
	b.Shoot("status-dark")
}
