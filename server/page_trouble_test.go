package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/tests/browser"
)

// TestThePageLoadsLater: who gives no key at first, or comes when the service is away, tries
// again in the same page, and a key that does not help can be forgotten.
func TestThePageLoadsLater(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys(t, "alices"))
	b := browser.New(t, 0, 0)
	for _, path := range []string{"/", "/status"} {
		b.Do(chromedp.Navigate(s.url + path))
		b.Until(`document.querySelector("#api-key") !== null`)
		b.Press("Escape")
		untilStatus(b, "An API key is needed.")
		require.Equal(t, "false", browser.Eval[string](b, `String(document.querySelector("#again").hidden)`))
		b.RequireAccessible()
		b.Shoot("no-key")
		if path == "/" {
			b.Do(chromedp.Focus(chromedp.CSS(".cell")))
			b.Press("Enter")
			b.Type("typed()")
		}
		press(b, "again")
		b.Until(`document.querySelector("#api-key") !== null`)
		b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), "alices\r"))
		b.Until(`document.querySelector("#again").hidden && document.querySelector("#run:not(:disabled), #none:not([hidden])") !== null`)
		if path == "/" {
			require.Equal(t, []string{"typed()"}, cellTexts(b))
		}
		browser.Eval[bool](b, `sessionStorage.clear(), true`)
	}

	// What is in the cells is there at once when the page is loaded again, and stays.
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#api-key") !== null`)
	b.Press("Escape")
	b.Do(chromedp.Focus(chromedp.CSS(".cell")))
	b.Press("Enter")
	b.Type("kept()")
	for range 2 {
		b.Do(chromedp.Reload())
		b.Until(`document.querySelector("#api-key") !== null`)
		require.Equal(t, []string{"kept()"}, cellTexts(b))
		b.Press("Escape")
		untilStatus(b, "An API key is needed.")
	}
	browser.Eval[bool](b, `(() => { addEventListener("pagehide", () => sessionStorage.clear()); return true; })()`)

	// A key is there, and the service away: the page comes from the browser's cache at most.
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#api-key") !== null`)
	browser.Eval[bool](b, `sessionStorage.setItem("notebox.key", "alices"), window.fetch = () => Promise.reject(new TypeError("away")), true`)
	b.Press("Escape")
	untilStatus(b, "An API key is needed.")
	press(b, "again")
	untilStatus(b, "The service does not answer.")
	require.False(t, browser.Eval[bool](b, `document.querySelector("#forget-key").hidden || document.querySelector("#again").hidden`))
}

// TestTheStatusPageWaits as long as the service says.
func TestTheStatusPageWaits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := browser.New(t, 0, 0)
	b.Do(chromedp.Navigate(s.url + "/status"))
	untilStatus(b, "Live")
	browser.Eval[bool](b, `(() => { window.asked = 0; window.fetch = async () => { window.asked++;
		return new Response("{}", { status: 429, headers: { "Retry-After": asked === 1 ? "1" : "60" } }); }; return true; })()`)
	b.Until(`window.asked === 2`) // a second is shorter than its own pause
	untilStatus(b, "Try again in 60 s.")
	time.Sleep(5 * time.Second)
	require.Equal(t, 2, browser.Eval[int](b, `window.asked`))
}

// TestWithoutJavaScript each page says what it lacks.
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s := newService(t)
	link := s.shared("", s.ran("", `{"code":"x"}`)).URL
	for _, path := range []string{s.url + "/", s.url + "/status", link} {
		a := s.call(http.MethodGet, path[len(s.url):], "Accept", "text/html")
		require.Regexp(t, `<main>\s*<noscript><p[^>]*>This page needs JavaScript`, string(a.body))
	}
	b := browser.New(t, 0, 0)
	_, err := chromedp.Call(b.Ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	b.Do(chromedp.Navigate(s.url+"/"), chromedp.WaitVisible(chromedp.CSS("noscript p")))
	b.Shoot("no-script")
}
