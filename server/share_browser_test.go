package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestASharedRunInAFreshBrowser: a person shares a run from the page; another, who has no key,
// sees it, and opens its code in the page. Then the first one revokes it.
func TestASharedRunInAFreshBrowser(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys(t, "alices"))
	sharing(s, stdout("the text\n"), picture(""), display(map[string]any{"application/vnd.plotly.v1+json": map[string]any{"data": []any{map[string]any{"y": []int{1, 3, 2}}}, "layout": map[string]any{"height": 321}}}))
	b := openPageWithKey(t, s, "alices")
	show(b, map[string]string{"markdown": "# Only typed"}, map[string]string{"code": "# Rides by hour\nplot()"})
	press(b, "share-button")
	untilStatus(b, "Run it first")
	press(b, "run")
	untilStatus(b, "Done")
	press(b, "share-button")
	b.Until(`document.querySelector("dialog .primary")?.textContent === "Make a link"`)
	b.RequireAccessible()
	b.Do(chromedp.Click(chromedp.CSS("dialog .primary")))
	b.Until(`document.querySelector("#share-link") !== null`)
	b.RequireAccessible()
	b.Shoot("share-dialog")
	link := browser.Eval[string](b, `document.querySelector("#share-link").value`)
	require.True(t, strings.HasPrefix(link, s.url+"/r/run_"), link)
	require.NotContains(t, link, "alices")

	visitor := browser.New(t, 1000, 1300)
	visitor.Do(chromedp.Navigate(link))
	visitor.Until(`document.querySelector(".outputs img")?.naturalWidth === 1`)
	visitor.Until(`document.querySelector("iframe")?.height === "321"`) // Plotly has drawn
	require.Equal(t, "Rides by hour", browser.Eval[string](visitor, `document.title`))
	require.Equal(t, "the text\n", browser.Eval[string](visitor, `document.querySelector(".stream").textContent`))
	require.Contains(t, browser.Eval[string](visitor, `document.querySelector(".source-code").textContent`), "plot()")
	require.Contains(t, browser.Eval[string](visitor, `document.querySelector("main ul").textContent`), "sub/a b.csv 8 B")
	require.Equal(t, "null", browser.Eval[string](visitor, `origin`), "it has an origin of its own")
	require.Equal(t, []string{link}, visitor.Requests()[:1])
	for _, request := range visitor.Requests() {
		require.True(t, request == link || strings.HasPrefix(request, "data:") || strings.HasPrefix(request, "blob:") || strings.HasPrefix(request, "about:"), request)
	}
	visitor.RequireAccessible()
	visitor.Shoot("shared")

	started := len(s.started())
	visitor.Do(chromedp.Click(chromedp.CSS("a.again")))
	visitor.Until(`document.querySelector("#api-key") !== null`)
	visitor.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), "alices\r")) // there is but this one key
	untilStatus(visitor, "was shared with you")
	require.Equal(t, s.url+"/", browser.Eval[string](visitor, `location.href`), "the link is not left in the address")
	require.Len(t, s.started(), started, "nothing runs by itself")
	press(visitor, "run")
	untilStatus(visitor, "Done")
	runs := s.started()
	require.Equal(t, []string{"# Rides by hour\nplot()"}, sources(t, runs[len(runs)-1]))

	b.Do(chromedp.Click(chromedp.CSS("#share-revoke")))
	b.Until(`document.querySelector("dialog [role=status]").textContent.includes("does not work any more")`)
	require.Equal(t, "Close", browser.Eval[string](b, `document.activeElement.getAttribute("aria-label")`))
	b.RequireAccessible()
	visitor.Do(chromedp.Navigate(link))
	visitor.Until(`document.querySelector("h1")?.textContent === "Not to be seen"`)
	visitor.RequireAccessible()
}

// openPageWithKey opens the page of a service that wants a key.
func openPageWithKey(t *testing.T, s *service, key string) *browser.Browser {
	t.Helper()
	b := browser.New(t, 0, 0)
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#api-key") !== null`)
	b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), key+"\r"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	return b
}

// TestASharedRunIsHostile: what code put out reaches nothing from the page that is shared:
// neither the key of who looks at it, nor the service, nor another host.
func TestASharedRunIsHostile(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys(t, "key-of-a-person"))
	e := newEnemy(t)
	sharing(s, append(e.outputs(s.url), stdout("</script><script>window.pwned=true</script>\n"), raised("<img src=x onerror=window.pwned=true>", "</script><script>window.pwned=true</script>"))...)
	inner := s.run
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		if err := events.File(ctx, `"><script>window.pwned=true<.csv`, strings.NewReader("x")); err != nil {
			return nil, err
		}
		return inner(ctx, spec, events)
	}
	code, err := json.Marshal(map[string]string{"code": "# </title></script><script>window.pwned=true</script>\nx"})
	require.NoError(t, err)
	link := s.shared("key-of-a-person", s.ran("key-of-a-person", string(code))).URL
	before := len(s.started())

	b := openPageWithKey(t, s, "key-of-a-person") // who looks at it has a key in this tab
	const (
		storage = `(() => { try { return sessionStorage.getItem("notebox.key"); } catch { return "refused"; } })()`
		cookie  = `(() => { try { return document.cookie + "read"; } catch { return "refused"; } })()`
	)
	asked := func() string {
		browser.Eval[bool](b, fmt.Sprintf(`window.asked = undefined, fetch(%q).then(() => { window.asked = "answered"; }, () => { window.asked = "refused"; }), true`, s.url+"/healthz"))
		b.Until(`window.asked !== undefined`)
		return browser.Eval[string](b, `window.asked`)
	}
	require.Equal(t, []string{"key-of-a-person", "read", "answered"}, []string{browser.Eval[string](b, storage), browser.Eval[string](b, cookie), asked()}, "a page of the service can")
	b.Do(chromedp.Navigate(link))
	b.Until(`document.querySelectorAll("iframe").length >= 6`)
	time.Sleep(5 * time.Second) // what the attacks began has had its time
	require.Equal(t, "null", browser.Eval[string](b, `String(window.pwned ?? null)`))
	require.Equal(t, link, browser.Eval[string](b, `location.href`))
	require.Equal(t, []string{"refused", "refused", "refused"}, []string{browser.Eval[string](b, storage), browser.Eval[string](b, cookie), asked()})
	require.Len(t, s.started(), before, "it has run code")
	require.Zero(t, e.visits.Load(), "another host was reached")
	require.Zero(t, e.packets.Load(), "another host was reached by WebRTC")
	e.requireTried(b)
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`) // the key is still there
	require.NotContains(t, browser.Eval[[]string](b, `[...Object.keys(localStorage), ...Object.keys(sessionStorage)]`), "pwned")
}

// TestASharedRunIsQuiet: WebRTC, and connections ahead of a request, which no policy of contents
// holds, reach no other host. A browser may end the page of who tries.
func TestASharedRunIsQuiet(t *testing.T) {
	t.Parallel()
	s := newService(t)
	e := newEnemy(t)
	sharing(s, display(map[string]any{"text/html": "<p>quiet</p><script>" + e.quiet() + "</script>"}))
	link := s.shared("", s.ran("", `{"code":"x"}`)).URL
	b := browser.New(t, 0, 0)
	b.Do(chromedp.Navigate(link))
	time.Sleep(5 * time.Second) // what was begun has had its time
	require.Zero(t, e.visits.Load(), "another host was reached")
	require.Zero(t, e.packets.Load(), "another host was reached by WebRTC")

	// The same page without the header that holds it does reach the host.
	a := s.seen(link)
	require.Equal(t, http.StatusOK, a.StatusCode)
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(a.body) }))
	defer bare.Close()
	b = browser.New(t, 0, 0)
	b.Do(chromedp.Navigate(bare.URL))
	require.Eventually(t, func() bool { return e.packets.Load() > 0 }, 20*time.Second, 50*time.Millisecond)
}
