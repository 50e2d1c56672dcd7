package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestHostileOutputs: what code puts out reaches neither the page, nor its key, nor another
// host, whatever form it has.
func TestHostileOutputs(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys("key-of-a-person")
	require.NoError(t, err)
	s := newService(t, func(cfg *Config) { cfg.Keys = keys })
	e := newEnemy(t)
	all := append(e.outputs(s.url), display(map[string]any{"text/html": "<p>quiet</p><script>" + e.quiet() + "</script>"}))
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for _, output := range all {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: json.RawMessage(output)})
		}
		for _, name := range []string{`<img src=x onerror=window.pwned=true>.txt`, "gpj\u202e.exe", `"><script>window.pwned=true<.csv`} {
			if err := events.File(ctx, name, strings.NewReader("<script>window.pwned=true</script>,\"<img src=x onerror=window.pwned=true>\"\n")); err != nil {
				return nil, err
			}
		}
		return executed(spec, runner.StatusError, all...), nil
	}
	b := browser.New(t, 1280, 4000) // all frames are in sight, so they are loaded
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#api-key") !== null`)
	b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), "key-of-a-person\r"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	before := len(s.started())
	// Chromium tells of no request that the policy of a frame in the page refuses. What else only
	// a script of the attack does: it writes to the page.
	browser.Eval[bool](b, `addEventListener("message", (event) => { if (event.data.html) window.attacked = true; }), true`)
	press(b, "run")
	untilStatus(b, "The code raised an error")
	b.Until(`document.querySelectorAll("iframe").length >= 6`)
	browser.Eval[bool](b, `document.querySelectorAll("#made details").forEach((d) => { d.open = true; }), true`)
	b.Until(`document.querySelectorAll("#made table td, #made table th, #made pre").length > 0`)
	time.Sleep(5 * time.Second) // what the attacks began has had its time

	require.Equal(t, "null", browser.Eval[string](b, `String(window.pwned ?? null)`))
	require.Equal(t, "notebox", browser.Eval[string](b, `document.title`))
	require.Equal(t, s.url+"/", browser.Eval[string](b, `location.href`))
	require.Equal(t, []string{"notebox.key"}, browser.Eval[[]string](b, `Object.keys(sessionStorage).filter((k) => k !== "notebox.draft")`))
	require.NotContains(t, browser.Eval[[]string](b, `Object.keys(localStorage)`), "pwned")
	require.Zero(t, browser.Eval[int](b, `document.querySelectorAll("main script, main form, main object, main embed, main meta, main base, main svg:not(.katex *), main [onerror], main [onload], main [style*=url]").length`))
	require.Equal(t, 1, browser.Eval[int](b, `document.querySelectorAll("#status").length`))
	require.Zero(t, browser.Eval[int](b, `[...document.querySelectorAll("main a[href], main img[src], main iframe")].filter((e) => /^javascript:/i.test(e.href ?? "") || (e.localName !== "a" && !/^(data:|blob:|`+strings.ReplaceAll(s.url, "/", `\/`)+`)/.test(e.src))).length`))
	require.Zero(t, browser.Eval[int](b, `[...document.querySelectorAll("iframe")].filter((f) => f.getAttribute("sandbox") !== "allow-scripts" || f.height > 2000).length`))
	require.NotContains(t, browser.Eval[string](b, `document.querySelector("#made").innerText`), "\u202e")
	require.Len(t, s.started(), before+1, "a frame has run code")
	require.Zero(t, e.visits.Load(), "another host was reached")
	require.Zero(t, e.packets.Load(), "another host was reached by WebRTC")
	require.True(t, browser.Eval[bool](b, `window.attacked === true`), "no script of a frame has run")
	require.NotContains(t, strings.Join(b.Requests(), "\n"), "key-of-a-person")
	e.requireReached(t)
}

// TestHostileOutputsInFirefox: what the other browser makes of them, in the page and in a shared
// run. What no policy of contents holds is not among them: see SECURITY.md.
func TestHostileOutputsInFirefox(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys(t, "key-of-a-person"))
	e := newEnemy(t)
	sharing(s, e.outputs(s.url)...)
	link := s.shared("key-of-a-person", s.ran("key-of-a-person", `{"code":"x"}`)).URL
	f := browser.NewFirefox(t)
	f.Size(1280, 4000)
	f.Open(s.url + "/")
	f.Text(`sessionStorage.setItem("notebox.key", "key-of-a-person")`)
	f.Open(s.url + "/")
	f.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	before := len(s.started())
	f.Text(`document.querySelector("#run").click()`)
	f.Until(`document.querySelector("#stop").hidden && document.querySelectorAll("iframe").length >= 5`)
	time.Sleep(5 * time.Second) // what the attacks began has had its time
	require.Equal(t, "null", f.Text(`window.pwned ?? null`))
	require.Equal(t, "notebox", f.Text(`document.title`))
	require.Equal(t, s.url+"/", f.Text(`location.href`))
	require.Equal(t, "notebox.key", f.Text(`Object.keys(sessionStorage).filter((k) => k !== "notebox.draft").join()`))
	require.Len(t, s.started(), before+1, "a frame has run code")
	require.Zero(t, e.visits.Load(), "another host was reached")

	f.Open(link)
	f.Until(`document.querySelectorAll("iframe").length >= 5`)
	time.Sleep(5 * time.Second)
	require.Equal(t, "null", f.Text(`window.pwned ?? null`))
	require.Equal(t, link, f.Text(`location.href`))
	require.Len(t, s.started(), before+1, "a frame has run code")
	require.Zero(t, e.visits.Load(), "another host was reached")

	f.Open("about:blank")
	f.Text(`location.href = "` + unheld(t, e.attack()) + `"`)
	require.Eventually(t, func() bool { return e.visits.Load() > 0 }, 20*time.Second, 50*time.Millisecond, "the attack does nothing")
}
