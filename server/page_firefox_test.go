package server

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestThePageInFirefox: code is typed and run, its output is there, an error is on its line, and
// HTML with a script is in a frame from which the page is not reached.
func TestThePageInFirefox(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusError, stdout("printed\n"),
			display(map[string]any{"text/html": `<div id="d">framed</div><script>try { parent.document.title = "taken" } catch { document.getElementById("d").style.height = "333px" }</script>`}),
			raised("ValueError", "not so")), nil
	}
	f := browser.NewFirefox(t)
	f.Open(s.url + "/")
	f.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	f.Keys([]string{browser.WebDriverEscape}, []string{"b"}, []string{"k"}, []string{"d"}, []string{"d"}, []string{browser.WebDriverEnter})
	for _, key := range "print(1)" {
		f.Keys([]string{string(key)})
	}
	f.Keys([]string{browser.WebDriverCtrl, browser.WebDriverEnter})
	f.Until(`document.querySelector("#status").textContent.includes("The code raised an error")`)
	require.Contains(t, strings.Join(sources(t, s.only()), "\n"), "print(1)")
	f.Until(`[...document.querySelectorAll(".outputs .stream")].some((e) => e.textContent === "printed\n")`)
	f.Until(`document.querySelector(".outputs iframe")?.clientHeight > 300`)
	require.Equal(t, "notebox", f.Text(`document.title`))
	require.Contains(t, f.Text(`document.querySelector(".outputs").innerText`), "not so")
	require.Empty(t, f.Complaints())
}
