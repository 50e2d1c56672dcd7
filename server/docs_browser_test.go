package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestPagesShowEveryOperation opens both pages for each document in Chromium.
func TestPagesShowEveryOperation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	shown := 0
	for _, d := range documentTitles {
		raw := s.get(d.Path)
		if raw.StatusCode == http.StatusNotFound {
			continue
		}
		shown++
		summaries := []string{}
		for _, item := range loadOpenAPI(t, raw.body).Paths.Map() {
			for _, operation := range item.Operations() {
				require.NotEmpty(t, operation.Summary, operation.OperationID)
				summaries = append(summaries, operation.Summary)
			}
		}
		wanted, err := json.Marshal(summaries)
		require.NoError(t, err)
		t.Run(d.Name+" to try", func(t *testing.T) {
			b := browser.New(t, 0, 0)
			b.Do(chromedp.Navigate(s.url + "/docs?api=" + d.Name))
			b.Until(fmt.Sprintf(`document.querySelectorAll(".opblock").length === %d`, len(summaries)))
			b.Shoot("docs-" + d.Name)
			b.RequireQuiet(s.url)
		})
		t.Run(d.Name+" to read", func(t *testing.T) {
			b := browser.New(t, 0, 0)
			b.Do(chromedp.Navigate(s.url + "/redoc?api=" + d.Name))
			b.Until(`document.querySelector("main h2") !== null`)
			b.Shoot("redoc-" + d.Name)
			// The operations of a tag are folded, and what is far from the window is not there.
			b.Until(fmt.Sprintf(`(() => {
				const folded = [...document.querySelectorAll("main button")].filter((e) => /^\W*Show$/.test(e.textContent));
				folded.forEach((e) => e.click());
				window.scrollBy(0, folded.length ? 0 : 800);
				window.seen ??= new Set();
				document.querySelectorAll("main h1, main h2, main h3").forEach((h) => seen.add(h.textContent));
				return %s.every((summary) => [...seen].some((heading) => heading.includes(summary)));
			})()`, wanted))
			b.Shoot("redoc-" + d.Name + "-end")
			b.RequireQuiet(s.url)
		})
	}
	require.Positive(t, shown)
}

// block selects an operation of Swagger UI.
func block(id string) string { return fmt.Sprintf(".opblock[id$='-%s']", id) }

// openOperation unfolds one operation of Swagger UI, and lets it be tried.
func openOperation(b *browser.Browser, id string) {
	b.T.Helper()
	block := block(id)
	b.Until(fmt.Sprintf(`document.querySelector(%q) !== null`, block))
	b.Do(
		chromedp.Click(chromedp.CSS(block+" .opblock-summary-control")),
		chromedp.Click(chromedp.CSS(block+" .try-out__btn")),
	)
}

// sendOperation sends an opened operation, and returns the status of the answer and its body.
func sendOperation(b *browser.Browser, id string) (status, body string) {
	b.T.Helper()
	block := block(id)
	b.Do(chromedp.Click(chromedp.CSS(block + " .btn.execute")))
	live := block + " .live-responses-table .response"
	b.Until(fmt.Sprintf(`document.querySelector(%q) !== null`, live+" .response-col_status"))
	return browser.Eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, live+" .response-col_status")),
		browser.Eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, live+" .response-col_description"))
}

// TestTheAPIIsTriedInAPage runs code from the page, as a person would: on loopback without
// keys, where the rules for browsers hold, and through a proxy that serves below a path.
func TestTheAPIIsTriedInAPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc   string
		prefix string // the proxy's; "": the service is asked itself
		public string // --public-url
	}{
		{desc: "on loopback"},
		{desc: "on loopback, with another public address", public: "https://code.example.org/box"},
		{desc: "below a path of a proxy", prefix: "/box"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, func(cfg *Config) { cfg.PublicURL = c.public })
			s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
				require.Contains(t, sources(t, spec)[0], "print")
				return executed(spec, runner.StatusOK, stdout("from the page\n")), nil
			}
			origin := s.url
			if c.prefix != "" {
				origin = proxyBelow(t, s.url, c.prefix)
			}
			b := browser.New(t, 0, 0)
			b.Do(chromedp.Navigate(origin + c.prefix + "/docs"))
			openOperation(b, "healthz")
			status, _ := sendOperation(b, "healthz")
			require.Contains(t, status, "200")
			openOperation(b, "execute")
			status, body := sendOperation(b, "execute")
			require.Contains(t, status, "200")
			require.Contains(t, body, "from the page")
			require.Len(t, s.started(), 1)
			b.Shoot("tried")
			b.RequireQuiet(origin)
		})
	}
}

// proxyBelow serves a service below a path, as a reverse proxy does, and returns its origin.
func proxyBelow(t *testing.T, service, prefix string) string {
	target, err := url.Parse(service)
	require.NoError(t, err)
	proxy := httptest.NewServer(http.StripPrefix(prefix, httputil.NewSingleHostReverseProxy(target)))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestAKeyIsEnteredInAPage: the page is open to all, its calls need the key that is entered
// in its dialog, in either header.
func TestAKeyIsEnteredInAPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, input string }{
		{"Authorization", "#auth-bearer-value"},
		{"X-API-Key", "#api_key_value"},
	} {
		t.Run(c.header, func(t *testing.T) {
			keys, err := NewKeys("key-of-a-person")
			require.NoError(t, err)
			s := newService(t, func(cfg *Config) { cfg.Keys = keys })
			require.Equal(t, http.StatusUnauthorized, s.get("/v1/environments").StatusCode)
			b := browser.New(t, 0, 0)
			b.Do(chromedp.Navigate(s.url + "/docs"))
			b.Until(`document.querySelector(".btn.authorize") !== null`)
			b.Do(
				chromedp.Click(chromedp.CSS(".btn.authorize")),
				chromedp.SendKeys(chromedp.CSS(c.input), "key-of-a-person"),
				chromedp.Click(chromedp.CSS(".auth-container:has("+c.input+") .btn.authorize")),
				chromedp.Click(chromedp.CSS(".close-modal")),
			)
			openOperation(b, "listEnvironments")
			status, body := sendOperation(b, "listEnvironments")
			require.Contains(t, status, "200")
			require.Contains(t, body, "jupyter")
			b.RequireQuiet(s.url)
			require.Empty(t, browser.Eval[[]string](b, `[...Object.keys(localStorage), ...Object.keys(sessionStorage)]`), "the key is kept")
		})
	}
}
