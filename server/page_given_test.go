package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

func cellTexts(b *browser.Browser) []string {
	b.T.Helper()
	return browser.Eval[[]string](b, `[...document.querySelectorAll(".cell")].map((cell) => [...cell.querySelector(".editor").shadowRoot.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n"))`)
}

// TestWhatIsDroppedOnThePage: a notebook opens, all else goes with the run.
func TestWhatIsDroppedOnThePage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var inputs map[string]string
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		var err error
		inputs, err = readInputs(spec)
		return executed(spec, runner.StatusOK), err
	}
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	b := openPage(t, s, 0, 0)
	b.Drop(`document.querySelector("#drop").hidden === false`, write("dropped.ipynb",
		`{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "python3"}}, "cells": [
			{"cell_type": "markdown", "metadata": {}, "source": "# Title"},
			{"cell_type": "code", "metadata": {}, "source": ["one()\n", "two()"], "outputs": [], "execution_count": null}]}`))
	untilStatus(b, "dropped.ipynb is open.")
	require.Equal(t, []string{"# Title", "one()\ntwo()"}, cellTexts(b))
	b.Drop(`document.querySelector("#drop").hidden === false`, write("in.csv", "a\n1\n"), write("other.ipynb", "no notebook"))
	b.Until(`document.querySelectorAll("#inputs .chip").length === 2 && document.querySelector("#drop").hidden`)
	press(b, "run")
	untilStatus(b, "Done")
	require.Equal(t, map[string]string{"in.csv": "a\n1\n", "other.ipynb": "no notebook"}, inputs)
	require.Equal(t, []string{"one()\ntwo()"}, sources(t, s.only()))
	b.Drop(`document.querySelector("#drop").hidden === false`, write("broken.ipynb", "no notebook"))
	untilStatus(b, "broken.ipynb could not be opened")
	require.Equal(t, []string{"# Title", "one()\ntwo()"}, cellTexts(b))
	b.RequireQuiet(s.url)
}

// TestThePagesPackages: each word of the field is one, and it is there for a language that can
// have some.
func TestThePagesPackages(t *testing.T) {
	t.Parallel()
	f := &fakePackages{}
	s := newService(t, withPackages(f))
	b := openPage(t, s, 0, 0)
	press(b, "options-button")
	b.Do(chromedp.SendKeys(chromedp.CSS("#packages"), "Polars==1.*,  humanize\t\r"))
	press(b, "run")
	untilStatus(b, "Done")
	require.Len(t, f.asked, 1)
	require.ElementsMatch(t, []string{"polars==1.*", "humanize"}, f.asked[0].Set.Entries)
	b.Do(chromedp.SetValue(chromedp.CSS("#packages"), "http://example.org/x.whl"))
	press(b, "run")
	untilStatus(b, "dependencies")
	require.Len(t, f.asked, 1)
	b.Do(chromedp.SetValue(chromedp.CSS("#language"), "r"))
	browser.Eval[bool](b, `document.querySelector("#language").dispatchEvent(new Event("change"))`)
	require.True(t, browser.Eval[bool](b, `document.querySelector("#packages-field").offsetWidth === 0`), "R has none here")
}

// TestThePageCopies: a request to the clipboard, or, where a browser does not let it, a text that
// is selected.
func TestThePageCopies(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "copied()"})
	allow := func(setting cdpbrowser.PermissionSetting, names ...string) {
		for _, name := range names {
			_, err := chromedp.Call(b.Ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
				Permission: &cdpbrowser.PermissionDescriptor{Name: name}, Setting: setting, Origin: s.url,
			})
			require.NoError(t, err)
		}
	}
	allow(cdpbrowser.PermissionSettingGranted, "clipboard-read", "clipboard-write")
	press(b, "request-button")
	for _, name := range []string{"Python", "curl"} {
		browser.Eval[bool](b, fmt.Sprintf(`[...document.querySelectorAll("dialog .tabs button")].find((e) => e.textContent === %q).click(), true`, name))
		b.Do(chromedp.Click(chromedp.CSS("dialog .primary")))
		b.Until(`document.querySelector("dialog .primary").textContent === "Copied"`)
		browser.Eval[bool](b, `window.read = undefined, navigator.clipboard.readText().then((text) => { window.read = text; }), true`)
		b.Until(`window.read !== undefined`)
		require.Equal(t, browser.Eval[string](b, `document.querySelector("dialog pre").textContent`), browser.Eval[string](b, `window.read`))
		require.Contains(t, browser.Eval[string](b, `window.read`), "copied()")
		b.Until(`document.querySelector("dialog .primary").textContent === "Copy"`)
	}
	browser.Eval[bool](b, `Object.defineProperty(navigator, "clipboard", { value: undefined }), true`) // as without TLS
	b.Do(chromedp.Click(chromedp.CSS("dialog .primary")))
	b.Until(`document.querySelector("dialog .primary").textContent.startsWith("Selected")`)
	require.Equal(t, browser.Eval[string](b, `document.querySelector("dialog pre").textContent`), browser.Eval[string](b, `getSelection().toString()`))
	b.RequireQuiet(s.url)
}

// TestThePagesHistory: the code of the last runs comes back, also after the page is loaded again,
// and is forgotten on demand. No output is in it, and it does not grow for ever.
func TestThePagesHistory(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK, stdout("put out\n")), nil
	}
	b := openPage(t, s, 0, 0)
	for _, code := range []string{"first()", "second()", "second()"} {
		show(b, map[string]string{"markdown": "# Words"}, map[string]string{"code": code})
		press(b, "run")
		untilStatus(b, "Done")
	}
	b.Do(chromedp.Reload())
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	press(b, "history-button")
	require.Equal(t, []string{"second()", "first()"}, browser.Eval[[]string](b, `[...document.querySelectorAll(".choices code")].map((e) => e.textContent)`))
	b.Do(chromedp.Click(chromedp.CSS(".choices li:nth-child(2) button")))
	b.Until(`document.querySelector("dialog") === null`)
	require.Equal(t, []string{"# Words", "first()"}, cellTexts(b))
	require.NotContains(t, browser.Eval[string](b, `JSON.stringify(Object.entries(localStorage))`), "put out")

	// Code that has not run is kept when something takes its place, and takes nothing from a run.
	statuses := `JSON.parse(localStorage["notebox.history"]).map((past) => past.status + (past.id ? " run" : ""))`
	b.Do(chromedp.Focus(chromedp.CSS(".cell.code")))
	b.Press("Enter")
	b.Type("mine()")
	mine := cellTexts(b)
	press(b, "examples-button")
	b.Do(chromedp.Click(chromedp.CSS(".choices button")))
	b.Until(`document.querySelector("dialog") === null`)
	require.Equal(t, []string{"not run", "ok run", "ok run"}, browser.Eval[[]string](b, statuses))
	press(b, "history-button")
	b.Do(chromedp.Click(chromedp.CSS(".choices button")))
	b.Until(`document.querySelector("dialog") === null`)
	require.Equal(t, mine, cellTexts(b))
	press(b, "run")
	untilStatus(b, "Done")
	show(b, map[string]string{"code": "other()"})
	require.Equal(t, []string{"ok run", "ok run", "ok run"}, browser.Eval[[]string](b, statuses))

	// One run that is too large is not kept, and the others are.
	show(b, map[string]string{"code": strings.Repeat("x", 600_000)})
	press(b, "run")
	untilStatus(b, "Done")
	require.Equal(t, []string{"not run", "ok run", "ok run", "ok run"}, browser.Eval[[]string](b, statuses))
	show(b, map[string]string{"code": "first()"})

	browser.Eval[bool](b, `(() => { const [past] = JSON.parse(localStorage["notebox.history"]);
		localStorage["notebox.history"] = JSON.stringify(Array.from({ length: 50 }, (_, i) => ({ ...past, cells: [{ kind: "code", text: "past(" + i + ")" }] }))); return true; })()`)
	press(b, "run")
	untilStatus(b, "Done")
	kept := browser.Eval[[]string](b, `JSON.parse(localStorage["notebox.history"]).map((past) => past.cells.at(-1).text)`)
	require.Len(t, kept, 50)
	require.Equal(t, []string{"first()", "past(0)"}, kept[:2])
	press(b, "history-button")
	browser.Eval[bool](b, `[...document.querySelectorAll("dialog button")].find((e) => e.textContent === "Forget all").click(), true`)
	press(b, "history-button")
	b.Until(`document.querySelector("dialog")?.textContent.includes("Nothing was run here yet.")`)
	b.RequireQuiet(s.url)
}

// TestThePageCompletesMembers: of modules that the image has, in the version that it has. The
// names are loaded when they are needed.
func TestThePageCompletesMembers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "from os import (path as place,\n    sep)"}, map[string]string{"code": ""})
	b.Press("j")
	b.Press("Enter")
	b.Type("import math")
	for _, address := range b.Requests() {
		require.NotContains(t, address, "/page/python-")
	}
	const options = `[...[...document.querySelectorAll(".editor")].at(-1).shadowRoot.querySelectorAll(".cm-completionLabel")].map((e) => e.textContent)`
	for _, c := range []struct{ typed, first, line string }{
		{"\nplace.isdi", "isdir", "place.isdir"},
		{"\nmath.sq", "sqrt", "math.sqrt"},
		{"\nfrom math import pi, ta", "tan", "from math import pi, tan"},
	} {
		b.Type(c.typed)
		b.Until(options + fmt.Sprintf(`[0] === %q`, c.first))
		time.Sleep(200 * time.Millisecond) // the editor takes nothing that came up just now
		b.Press("Tab")
		b.Until(fmt.Sprintf(`[...[...document.querySelectorAll(".editor")].at(-1).shadowRoot.querySelectorAll(".cm-line")].at(-1).textContent === %q`, c.line))
	}
	b.Type("\nimport numpy as np\nnp.lins") // this service says that it has another numpy
	b.Press(" ", browser.Ctrl)
	time.Sleep(500 * time.Millisecond) // what it would offer is there then
	require.Zero(t, browser.Eval[int](b, options+`.length`))
	b.RequireQuiet(s.url)
}
