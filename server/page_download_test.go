package server

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestThePageDownloads: what was run, as a notebook, as code, and as a page of its own.
func TestThePageDownloads(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK, stdout("printed\n"), picture(""), display(map[string]any{"text/html": "<b>bold</b>"})), nil
	}
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"markdown": "# Title"}, map[string]string{"code": "one()\ntwo()"}, map[string]string{"code": "three()"})
	press(b, "run")
	untilStatus(b, "Done")
	download := saving(b)
	var book struct {
		Format int `json:"nbformat"`
		Cells  []struct {
			Type    string `json:"cell_type"`
			Source  string
			Outputs []struct {
				Type string `json:"output_type"`
				Text string
				Data map[string]string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(download(0)), &book))
	require.Equal(t, 4, book.Format)
	require.Len(t, book.Cells, 3)
	require.Equal(t, "markdown", book.Cells[0].Type)
	require.Equal(t, "one()\ntwo()", book.Cells[1].Source)
	require.Equal(t, "printed\n", book.Cells[1].Outputs[0].Text)
	require.NotEmpty(t, book.Cells[1].Outputs[1].Data["image/png"])
	require.Equal(t, "<b>bold</b>", book.Cells[1].Outputs[2].Data["text/html"])
	require.Equal(t, "one()\ntwo()\n\nthree()\n", download(1))

	record := download(2)
	b.RequireQuiet(s.url)

	// The service is away, and the page says so.
	b.Do(chromedp.Reload())
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	browser.Eval[bool](b, `window.fetch = () => Promise.reject(new TypeError("away")), true`)
	press(b, "download-button")
	browser.Eval[bool](b, `document.querySelectorAll(".choices button")[2].click(), true`)
	untilStatus(b, "notebook.html could not be made: away.")
	b = browser.New(t, 0, 0)
	openRecord(b, record)
	b.Until(`document.querySelector(".outputs img")?.naturalWidth === 1`)
	b.Until(`document.querySelector(".stream").textContent === "printed\n"`)
	b.Until(`document.querySelector(".markdown h1")?.textContent === "Title"`)
}

// saving returns what saves a choice of the download dialog, by its place, and returns its text.
func saving(b *browser.Browser) func(choice int) string {
	b.T.Helper()
	browser.Eval[bool](b, `(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return make.call(URL, blob); }; return true; })()`)
	return func(choice int) string {
		b.T.Helper()
		browser.Eval[bool](b, `window.saved = undefined, true`)
		press(b, "download-button")
		browser.Eval[bool](b, fmt.Sprintf(`document.querySelectorAll(".choices button")[%d].click(), true`, choice))
		b.Until(`window.saved !== undefined && document.querySelector("dialog") === null`)
		return browser.Eval[string](b, `window.saved`)
	}
}

// openRecord shows a downloaded page as it is without a service.
func openRecord(b *browser.Browser, record string) {
	b.T.Helper()
	b.Do(chromedp.Navigate("about:blank"))
	browser.Eval[bool](b, fmt.Sprintf(`document.open(), document.write(%s), document.close(), true`, mustJSON(b.T, record)))
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return string(raw)
}
