package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestASharedRunTakesNothingAway: the code of a stranger opens in a page with somebody's own
// code, session, files and options. What is theirs stays if they want, and else the stranger's
// code gets none of it. What a chat adds to the link does not matter.
func TestASharedRunTakesNothingAway(t *testing.T) {
	t.Parallel()
	s := withSessions(t, calculating(t))
	link := s.shared("", s.ran("", `{"code":"strangers()"}`)).URL + "&utm_source=a%2Fb:c&fbclid=x,y"
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "x = 1"})
	b.Do(chromedp.Click(chromedp.CSS("label:has(#session-mode)")))
	b.Do(chromedp.Focus(chromedp.CSS(".cell")))
	b.Press("Enter", browser.Ctrl)
	untilStatus(b, "Done")
	require.Equal(t, "x = 1", cellTexts(b)[0])
	file := filepath.Join(t.TempDir(), "mine.csv")
	require.NoError(t, os.WriteFile(file, []byte("a\n"), 0o600))
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#file-input"), []string{file}))
	press(b, "options-button")
	browser.Eval[bool](b, `document.querySelector("#network").checked = true, document.querySelector("#packages").value = "polars", true`)
	before := len(s.started())

	// As the button of the shared page does, in this tab.
	at, query, _ := strings.Cut(strings.TrimPrefix(link, s.url), "?")
	again := func() {
		browser.Eval[bool](b, `location.hash = `+mustJSON(t, "#"+strings.TrimPrefix(at, "/")+"?"+query)+`, true`)
		b.Until(`document.querySelector("dialog")?.textContent.includes("Your session is closed. Your files are left out.")`)
	}
	again()
	b.RequireAccessible()
	b.Shoot("shared-over-own")
	b.Press("Escape")
	untilStatus(b, "was not opened")
	require.Equal(t, []string{"x = 1"}, cellTexts(b))
	require.False(t, browser.Eval[bool](b, `document.querySelector("#session-line").hidden`))
	require.Equal(t, 1, browser.Eval[int](b, `document.querySelectorAll(".chip").length`))

	again()
	b.Do(chromedp.Click(chromedp.CSS("dialog .primary")))
	untilStatus(b, "was shared with you")
	require.Equal(t, []string{"strangers()"}, cellTexts(b))
	require.Equal(t, s.url+"/", browser.Eval[string](b, `location.href`))
	require.Len(t, s.started(), before, "nothing runs by itself")
	require.Equal(t, "true,false,,0", browser.Eval[string](b, `[document.querySelector("#fresh-mode").checked, document.querySelector("#network").checked, document.querySelector("#packages").value, document.querySelectorAll(".chip").length].join()`))
	b.Until(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/v1/sessions/")).length > 0`) // it is closed
	press(b, "run")
	untilStatus(b, "Done")
	runs := s.started()
	require.Equal(t, []string{"strangers()"}, sources(t, runs[len(runs)-1]))
	inputs, err := readInputs(runs[len(runs)-1])
	require.NoError(t, err)
	require.Empty(t, inputs)
	require.Zero(t, runs[len(runs)-1].Network)

	press(b, "history-button")
	b.Shoot("history")
	require.Contains(t, browser.Eval[[]string](b, `[...document.querySelectorAll(".choices code")].map((e) => e.textContent)`), "x = 1")
	b.Do(chromedp.Click(chromedp.CSS(".choices li:nth-child(2) button")))
	b.Until(`document.querySelector("dialog") === null`)
	require.Equal(t, []string{"x = 1"}, cellTexts(b))
	b.RequireQuiet(s.url)
}

// TestASharedRunWaitsForARun: while a run goes on, nothing takes its cells away, and the page says so.
func TestASharedRunWaitsForARun(t *testing.T) {
	t.Parallel()
	s := newService(t)
	link := s.shared("", s.ran("", `{"code":"strangers()"}`)).URL
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		<-ctx.Done()
		return executed(spec, runner.StatusCancelled), nil
	}
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "mine()"})
	press(b, "run")
	untilStatus(b, "Running")
	browser.Eval[bool](b, `location.hash = `+mustJSON(t, "#"+strings.TrimPrefix(link, s.url+"/"))+`, true`)
	untilStatus(b, "then open the shared run again")
	require.Equal(t, []string{"mine()"}, cellTexts(b))
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#open-input"), []string{writeFile(t, "other.py", "other()")}))
	untilStatus(b, "A run goes on. Stop it first.")
	require.Equal(t, []string{"mine()"}, cellTexts(b))
	press(b, "stop")
	untilStatus(b, "Stopped")
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestAShareIsRevokedLater: by its owner, from the History after the page was loaded again, and
// from /status, which knows of each run; the key is asked for over the dialog.
func TestAShareIsRevokedLater(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys(t, "alices"))
	b := openPageWithKey(t, s, "alices")
	share := func() string {
		t.Helper()
		b.Do(chromedp.Click(chromedp.CSS("dialog .primary")))
		b.Until(`document.querySelector("#share-link") !== null`)
		return browser.Eval[string](b, `document.querySelector("#share-link").value`)
	}
	revoke := func(link string) {
		t.Helper()
		require.Equal(t, http.StatusOK, s.seen(link).StatusCode)
		b.Do(chromedp.Click(chromedp.CSS("#share-revoke")))
		b.Until(`document.querySelector("dialog").textContent.includes("does not work any more")`)
		require.Equal(t, http.StatusNotFound, s.seen(link).StatusCode)
	}
	show(b, map[string]string{"code": "first()"})
	press(b, "run")
	untilStatus(b, "Done")
	press(b, "share-button")
	link := share()
	b.Press("Escape")
	press(b, "run") // the same code again: the run that is shared is kept
	untilStatus(b, "Done")
	b.Do(chromedp.Reload())
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	press(b, "history-button")
	b.Until(`document.querySelectorAll(".past").length === 2`)
	require.Contains(t, browser.Eval[string](b, `document.querySelectorAll(".past")[1].textContent`), "shared")
	b.RequireAccessible()
	b.Shoot("history-shared")
	b.Do(chromedp.Click(chromedp.CSS("li:nth-child(2) .past > button:last-child")))
	b.Until(`document.querySelector("#share-revoke") !== null`)
	browser.Eval[bool](b, `sessionStorage.removeItem("notebox.key"), true`)
	b.Do(chromedp.Click(chromedp.CSS("#share-revoke")))
	b.Until(`document.querySelector("#api-key") !== null`)
	require.True(t, browser.Eval[bool](b, `[...document.querySelectorAll("dialog")].every((d, i, all) => document.getElementById(d.getAttribute("aria-labelledby")).closest("dialog") === d) && document.querySelectorAll("dialog").length === 2`), "each dialog has a title of its own")
	b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), "alices\r"))
	b.Until(`document.querySelector("dialog").textContent.includes("does not work any more")`)
	require.Equal(t, http.StatusNotFound, s.seen(link).StatusCode)
	b.Press("Escape")
	press(b, "history-button")
	require.NotContains(t, browser.Eval[string](b, `document.querySelectorAll(".past")[1].querySelector(".meta").textContent`), "shared")

	// A link that a program made.
	id := s.ran("alices", `{"code":"x"}`)
	link = s.shared("alices", id).URL
	b.Do(chromedp.Navigate(s.url + "/status"))
	button := `#runs tr[data-run="` + id + `"] button`
	b.Until(`document.querySelector('` + button + `') !== null`)
	b.Do(chromedp.Click(chromedp.CSS(button)))
	b.Until(`document.querySelector("#share-revoke") !== null`)
	b.RequireAccessible()
	revoke(link)
	b.Press("Escape")
	b.Until(`document.querySelector("dialog") === null`)
	b.Do(chromedp.Click(chromedp.CSS(button)))
	b.Do(chromedp.Click(chromedp.CSS("#share-revoke")))
	b.Until(`document.querySelector("dialog").textContent.includes("There is no link to this run.")`)
}
