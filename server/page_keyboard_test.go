package server

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestThePageNeedsNoMouse: from its load on nothing but keys. Code is typed and run, a cell is
// added, a dialog is opened, used and closed, a run is stopped, files are looked into, a notebook
// is downloaded; and no place of the page holds the focus back.
func TestThePageNeedsNoMouse(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		if code := strings.Join(sources(t, spec), "\n"); strings.Contains(code, "endless") {
			<-ctx.Done()
			return executed(spec, runner.StatusCancelled), nil
		}
		if err := events.File(ctx, "out.csv", strings.NewReader("a,b\n1,2\n")); err != nil {
			return nil, err
		}
		return executed(spec, runner.StatusOK, stdout("printed\n")), nil
	}
	b := openPage(t, s, 0, 0)
	b.Until(`document.activeElement?.matches(".editor") === true`) // the cursor is in the example

	// Tab indents in there, so the way out is told: to see, and in the editor's name.
	const hint = `document.querySelector("#leave-hint").checkVisibility()`
	require.True(t, browser.Eval[bool](b, hint))
	require.Contains(t, browser.Eval[string](b, `document.activeElement.shadowRoot.activeElement.getAttribute("aria-label")`), "Escape leaves the editor")
	b.RequireAccessible()
	b.Shoot("leave-hint")
	b.Press("Escape")
	require.False(t, browser.Eval[bool](b, hint))
	b.Press("Enter")

	// An example of the dialog is chosen, and its code replaced.
	b.Press("Escape")
	b.TabTo("#examples-button", browser.Shift)
	b.Press("Enter")
	b.Until(`document.querySelector("dialog") !== null`)
	b.TabTo("dialog .choices button")
	b.Press("Enter")
	b.Until(`document.querySelector("dialog") === null && document.activeElement.matches(".cell")`)
	b.Press("d")
	b.Press("d")
	for browser.Eval[int](b, `document.querySelectorAll(".cell").length`) > 1 {
		b.Press("d")
		b.Press("d")
	}
	b.Press("b")
	b.Press("k")
	b.Press("d")
	b.Press("d")
	b.Press("Enter")
	b.Type("print(1)")
	require.Equal(t, []string{"print(1)"}, cellTexts(b))
	b.Press("Enter", browser.Ctrl)
	untilStatus(b, "Done")
	b.Until(`document.querySelector(".outputs .stream")?.textContent === "printed\n"`)

	// From the cell Tab goes on: over its output to what the run made, and to a button for cells.
	b.TabTo("#made summary")
	b.Press("Enter")
	b.Until(`document.querySelector("#made table") !== null`)
	b.TabTo("#made a[download]", browser.Shift)
	b.TabTo("#add-code", browser.Shift)
	b.Press("Enter")
	b.Until(`document.querySelectorAll(".cell").length === 2 && document.activeElement.matches(".editor")`)
	b.Type("endless()")
	b.Press("Escape")

	// Run, and Stop, by their buttons.
	b.TabTo("#run", browser.Shift)
	b.Press("Enter")
	untilStatus(b, "Running")
	b.TabTo("#stop", browser.Shift)
	b.Press("Enter")
	untilStatus(b, "Stopped")
	b.Until(`document.querySelector("#stop").hidden`)

	// A dialog is closed by Escape, and the focus is where it was.
	b.TabTo("#keys-button", browser.Shift)
	b.Press("Enter")
	b.Until(`document.querySelector("dialog .keys") !== null`)
	b.Press("Escape")
	b.Until(`document.querySelector("dialog") === null && document.activeElement.id === "keys-button"`)

	browser.Eval[bool](b, `(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return make.call(URL, blob); }; return true; })()`)
	b.TabTo("#download-button", browser.Shift)
	b.Press("Enter")
	b.TabTo("dialog .choices button")
	b.Press("Enter")
	b.Until(`window.saved?.includes("print(1)") && document.querySelector("dialog") === null`)
	b.RequireQuiet(s.url)
}
