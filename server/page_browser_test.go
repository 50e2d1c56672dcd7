package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// openPage opens the page of a service, and waits until it can run.
func openPage(t *testing.T, s *service, width, height int) *browser.Browser {
	t.Helper()
	b := browser.New(t, width, height)
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	return b
}

// show opens a notebook of these cells in the page.
func show(b *browser.Browser, cells ...map[string]string) {
	b.T.Helper()
	book := map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{"kernelspec": map[string]any{"name": "python3"}}}
	list := []any{}
	for _, c := range cells {
		for kind, text := range c {
			list = append(list, map[string]any{"cell_type": kind, "source": strings.SplitAfter(text, "\n"), "metadata": map[string]any{}})
		}
	}
	book["cells"] = list
	raw, err := json.Marshal(book)
	require.NoError(b.T, err)
	file := filepath.Join(b.T.TempDir(), "of a test.ipynb")
	require.NoError(b.T, os.WriteFile(file, raw, 0o600))
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#open-input"), []string{file}))
	untilStatus(b, "of a test.ipynb is open")
	require.Equal(b.T, len(cells), browser.Eval[int](b, `document.querySelectorAll(".cell").length`))
}

func press(b *browser.Browser, id string) {
	b.T.Helper()
	b.Do(chromedp.Click(chromedp.CSS("#" + id)))
}

func untilStatus(b *browser.Browser, text string) {
	b.T.Helper()
	b.Until(fmt.Sprintf(`document.querySelector("#status").textContent.includes(%q)`, text))
}

func display(data map[string]any) string {
	raw, _ := json.Marshal(map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": data})
	return string(raw)
}

// TestThePageShowsOutputsAsTheyHappen: a person types code and runs it by the keyboard, sees
// its picture while it runs, and how it ended.
func TestThePageShowsOutputsAsTheyHappen(t *testing.T) {
	t.Parallel()
	s := newService(t)
	steps := make(chan string) // outputs, until it is closed
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for {
			select {
			case output, ok := <-steps:
				if !ok {
					return executed(spec, runner.StatusOK, picture(""), stdout("so far\nto the end\n")), nil
				}
				events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(output)})
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": ""})
	b.Press("Enter")
	b.Type("plot()\nprint(1)")
	b.Press("Enter", browser.Ctrl)
	untilStatus(b, "Running")
	require.Equal(t, "plot()\nprint(1)", sources(t, s.only())[0])
	steps <- picture("")
	b.Until(`document.querySelector(".outputs img")?.naturalWidth === 1`)
	steps <- stdout("so far\n")
	b.Until(`document.querySelector(".outputs .stream")?.textContent === "so far\n"`)
	require.True(t, browser.Eval[bool](b, `document.querySelector("#stop").hidden === false`), "it still runs")
	close(steps)
	untilStatus(b, "Done")
	b.Until(`document.querySelector(".outputs .stream").textContent === "so far\nto the end\n"`) // it is drawn with the next frame
	require.Equal(t, "Done · 12 ms · 81 MB", browser.Eval[string](b, `document.querySelector("#status").textContent`))
	b.RequireQuiet(s.url)
}

// TestThePageStops: Stop cancels the run, and what there was until then stays.
func TestThePageStops(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout("endless\n"))})
		<-ctx.Done()
		return executed(spec, runner.StatusCancelled, stdout("endless\n")), nil
	}
	b := openPage(t, s, 0, 0)
	press(b, "run")
	b.Until(`document.querySelector(".outputs .stream")?.textContent === "endless\n"`)
	press(b, "stop")
	untilStatus(b, "Stopped")
	b.Until(`document.querySelector("#stop").hidden && !document.querySelector("#run").disabled`)
	require.Equal(t, "endless\n", browser.Eval[string](b, `document.querySelector(".outputs .stream").textContent`))
	b.RequireQuiet(s.url)
}

// TestThePageTakesAndGivesFiles: a file goes with the run, and what the run made is looked into
// and downloaded.
func TestThePageTakesAndGivesFiles(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		inputs, err := readInputs(spec)
		if err != nil {
			return nil, err
		}
		if err := events.File(ctx, "out.csv", strings.NewReader("made of,"+inputs["in.csv"])); err != nil {
			return nil, err
		}
		return executed(spec, runner.StatusOK), nil
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "in.csv")
	require.NoError(t, os.WriteFile(file, []byte("a\n1,\"x,y\"\n"), 0o600))
	b := openPage(t, s, 0, 0)
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#file-input"), []string{file}))
	b.Until(`document.querySelector("#inputs .chip")?.textContent.startsWith("in.csv")`)
	press(b, "run")
	untilStatus(b, "Done")
	require.Equal(t, "out.csv", browser.Eval[string](b, `document.querySelector(".made-name").textContent`))
	b.Do(chromedp.Click(chromedp.CSS("#made summary")))
	b.Until(`document.querySelector("#made table") !== null`)
	require.Equal(t, []string{"made of", "a", "1", "x,y"}, browser.Eval[[]string](b, `[...document.querySelectorAll("#made th, #made td")].map((e) => e.textContent)`))
	link := browser.Eval[string](b, `document.querySelector("#made a").href`)
	require.Equal(t, "made of,a\n1,\"x,y\"\n", string(s.get(link).body))
	require.True(t, browser.Eval[bool](b, `document.querySelector("#made a").hasAttribute("download")`))
	b.RequireQuiet(s.url)
}

// TestThePageMarksTheLineOfAnError: in the editor, where a click on the traceback leads.
func TestThePageMarksTheLineOfAnError(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		out := executed(spec, runner.StatusError)
		raw, _ := json.Marshal(map[string]any{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero",
			"traceback": []string{strings.Repeat("-", 75), "ZeroDivisionError                         Traceback (most recent call last)",
				"Cell In[2], line 3\n      1 a\n      2 b\n----> 3 1/0\n", "ZeroDivisionError: division by zero"}})
		var book struct {
			Cells    []map[string]json.RawMessage `json:"cells"`
			Metadata json.RawMessage              `json:"metadata"`
			Format   int                          `json:"nbformat"`
			Minor    int                          `json:"nbformat_minor"`
		}
		if err := json.Unmarshal(out.Notebook, &book); err != nil {
			return nil, err
		}
		book.Cells[1]["execution_count"], book.Cells[1]["outputs"] = json.RawMessage("2"), json.RawMessage("["+string(raw)+"]")
		out.Notebook, _ = json.Marshal(book)
		return out, nil
	}
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"markdown": "# Title"}, map[string]string{"code": "x = 1"}, map[string]string{"code": "a\nb\n1/0"})
	press(b, "run")
	untilStatus(b, "The code raised an error")
	marked := `[...document.querySelectorAll(".cell.code")].map((cell) => cell.querySelector(".editor").shadowRoot.querySelector(".cm-failing")?.textContent ?? "")`
	require.Equal(t, []string{"", "1/0"}, browser.Eval[[]string](b, marked))
	b.Do(chromedp.Click(chromedp.CSS(".traceback .link")))
	b.Until(`document.activeElement === document.querySelectorAll(".cell.code .editor")[1]`)
	require.Equal(t, "3", browser.Eval[string](b, `document.querySelectorAll(".cell.code .editor")[1].shadowRoot.querySelector(".cm-failing-number").textContent`))
	b.RequireQuiet(s.url)
}

// TestThePageIsUsedByTheKeyboard: the keys of Jupyter.
func TestThePageIsUsedByTheKeyboard(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "first"})
	texts := func() []string {
		return browser.Eval[[]string](b, `[...document.querySelectorAll(".cell .editor")].map((e) => [...e.shadowRoot.querySelectorAll(".cm-line")].map((l) => l.querySelector(".cm-placeholder") ? "" : l.textContent).join("\n"))`)
	}
	press := func(keys ...string) {
		for _, key := range keys {
			b.Press(key)
		}
	}
	press("b", "Enter")
	b.Type("second")
	require.Equal(t, []string{"first", "second"}, texts())
	press("Escape", "a", "Enter")
	b.Type("between")
	require.Equal(t, []string{"first", "between", "second"}, texts())
	press("Escape", "k", "d", "d")
	require.Equal(t, []string{"between", "second"}, texts())
	press("z")
	require.Equal(t, []string{"first", "between", "second"}, texts())
	press("j", "j")
	b.Press("Enter", browser.Shift)
	untilStatus(b, "Done")
	require.Equal(t, []string{"first", "between", "second"}, sources(t, s.only()))
	require.Len(t, texts(), 4, "there is a next cell")
	b.RequireQuiet(s.url)
}

// TestThePageAsksForAKey: once, where the service wants one; it is in this tab alone, and in no
// address.
func TestThePageAsksForAKey(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys("key-of-a-person")
	require.NoError(t, err)
	s := newService(t, func(cfg *Config) { cfg.Keys = keys })
	b := browser.New(t, 0, 0)
	b.Do(chromedp.Navigate(s.url + "/"))
	for _, key := range []string{"wrong", "key-of-a-person"} {
		b.Until(`document.querySelector("#api-key") !== null`)
		b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), key+"\r"))
		if key == "wrong" {
			b.Until(`document.querySelector("dialog")?.textContent.includes("does not know this key")`)
		}
	}
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	press(b, "run")
	untilStatus(b, "Done")
	kept := browser.Eval[string](b, `JSON.stringify([Object.entries(localStorage), document.cookie, location.href])`)
	require.NotContains(t, kept, "key-of-a-person")
	require.Contains(t, kept, "notebox.history")
	press(b, "request-button")
	require.Contains(t, browser.Eval[string](b, `document.querySelector("dialog pre").textContent`), "$NOTEBOX_KEY")
	require.NotContains(t, browser.Eval[string](b, `document.documentElement.outerHTML`), "key-of-a-person")
	b.Do(chromedp.Reload())
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`) // it is not asked again
	for _, address := range b.Requests() {
		require.NotContains(t, address, "key-of-a-person")
	}
}

// TestFirstLoad: the page and all that it loads before somebody runs code.
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	const budget = 600 << 10 // bytes as they are sent: some seconds on a slow line
	s := newService(t)
	b := browser.New(t, 0, 0)
	var sent atomic.Int64
	require.NoError(t, chromedp.Listen(b.Ctx, func(event any) {
		if e, ok := event.(*network.EventLoadingFinished); ok {
			sent.Add(int64(e.EncodedDataLength))
		}
	}))
	b.Do(chromedp.Navigate(s.url + "/"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null && document.readyState === "complete"`)
	time.Sleep(time.Second)
	require.Greater(t, sent.Load(), int64(100_000))
	require.Less(t, sent.Load(), int64(budget))
	t.Logf("first load: %d bytes", sent.Load())
	for _, address := range b.Requests() {
		require.NotRegexp(t, `plotly|widgets|katex|woff2|marked`, address, "loaded when nothing needs it")
	}
	b.RequireQuiet(s.url)
	require.Equal(t, http.StatusOK, s.get("/page/plotly.js").StatusCode)
}

// TestThePageIsAccessible: each view, in light and dark, on a desk and on a phone.
func TestThePageIsAccessible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc          string
		scheme        string
		width, height int
	}{
		{"light", "light", 1280, 900},
		{"dark", "dark", 1280, 900},
		{"phone", "light", 390, 844},
		{"phone, dark", "dark", 390, 844},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				if err := events.File(ctx, "out.csv", strings.NewReader("a,b\n1,2\n")); err != nil {
					return nil, err
				}
				return executed(spec, runner.StatusError,
					stdout("printed\n"), `{"output_type":"stream","name":"stderr","text":"to stderr\n"}`,
					display(map[string]any{"text/html": `<table class="dataframe"><thead><tr><th></th><th>a</th></tr></thead><tbody><tr><th>0</th><td>1</td></tr></tbody></table>`}),
					display(map[string]any{"text/markdown": "## Words\n\n*and* `code`, $x^2$ and a [link](https://example.org)"}),
					display(map[string]any{"text/latex": `$\int_0^1 x\,dx$`}),
					display(map[string]any{"text/html": `<p style="color: red">framed</p>`}),
					picture(""), raised("ValueError", "not so")), nil
			}
			b := browser.New(t, c.width, c.height)
			b.Prefer(c.scheme)
			b.Do(chromedp.Navigate(s.url + "/"))
			b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
			require.Equal(t, c.scheme, browser.Eval[string](b, `document.documentElement.dataset.theme`))
			show(b, map[string]string{"markdown": "# A title\n\n- a list"}, map[string]string{"code": "import pandas as pd\n# a remark\nx = \"text\" + 1"})
			b.RequireAccessible()
			press(b, "options-button")
			press(b, "run")
			untilStatus(b, "The code raised an error")
			b.Until(`document.querySelector(".katex") !== null && document.querySelector(".markdown h2") !== null`)
			b.Do(chromedp.Click(chromedp.CSS("#made summary")))
			b.Until(`document.querySelector("#made table") !== null`)
			time.Sleep(300 * time.Millisecond) // what appears has its colours then
			b.RequireAccessible()
			require.LessOrEqual(t, browser.Eval[int](b, `document.documentElement.scrollWidth`), c.width, "it is wider than the window")
			b.Shoot("page-" + strings.ReplaceAll(c.desc, ", ", "-"))
			for _, button := range []string{"examples-button", "history-button", "request-button", "download-button", "keys-button"} {
				if browser.Eval[bool](b, fmt.Sprintf(`document.getElementById(%q).offsetWidth === 0`, button)) {
					continue // a phone has no keys
				}
				press(b, button)
				b.RequireAccessible()
				b.Press("Escape")
				b.Until(`document.querySelector("dialog") === null`)
			}
			b.RequireQuiet(s.url)
		})
	}
}
