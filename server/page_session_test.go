package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner/runnertest"
	"notebox/tests/browser"
)

// pixels is a picture of this width.
func pixels(t *testing.T, width int) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, width, 1))))
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// TestThePagesPicturesInASession: each run of a session counts its pictures anew, and each cell
// keeps its own in what is downloaded.
func TestThePagesPicturesInASession(t *testing.T) {
	t.Parallel()
	f := newSessions(t)
	widths := map[string]int{"small": 2, "large": 3}
	for source, width := range widths {
		f.On(source, func(k *runnertest.Kernel) {
			k.Output(map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"image/png": pixels(t, width)}})
		})
	}
	s := withSessions(t, f)
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "small"}, map[string]string{"code": "large"})
	b.Do(chromedp.Click(chromedp.CSS("label:has(#session-mode)")))
	b.Do(chromedp.Focus(chromedp.CSS(".cell")))
	for range widths {
		b.Press("Enter", browser.Shift)
		untilStatus(b, "Done")
	}
	b.Until(`[...document.querySelectorAll(".outputs img")].map((e) => e.naturalWidth).join() === "2,3"`)

	var book struct {
		Cells []struct {
			Outputs []struct{ Data map[string]string }
		}
	}
	saved := saving(b)
	require.NoError(t, json.Unmarshal([]byte(saved(0)), &book))
	require.Equal(t, pixels(t, 2), book.Cells[0].Outputs[0].Data["image/png"])
	require.Equal(t, pixels(t, 3), book.Cells[1].Outputs[0].Data["image/png"])
	record := saved(2)
	b.RequireQuiet(s.url)
	b = browser.New(t, 0, 0)
	openRecord(b, record)
	b.Until(`[...document.querySelectorAll(".outputs img")].map((e) => e.naturalWidth).join() === "2,3"`)
}

// TestTracebacksInASession: a click goes to the cell that failed, also when another has run
// since; other cells' counts are of nobody that the page knows. Leading blank lines count.
func TestTracebacksInASession(t *testing.T) {
	t.Parallel()
	f := newSessions(t)
	fails := func(count int, frames ...string) func(*runnertest.Kernel) {
		return func(k *runnertest.Kernel) {
			k.Count = count
			k.Raise("ValueError", "not this")
			k.Output(map[string]any{"output_type": "error", "ename": "ValueError", "evalue": "boom", "traceback": append([]string{"-----"}, append(frames, "ValueError: boom")...)})
		}
	}
	f.On("one\nfails", fails(1, "Cell In[1], line 2"))
	f.On("\n\ntwo\nfails", fails(2, "Cell In[2], line 2", "Cell In[1], line 1"))
	s := withSessions(t, f)
	b := openPage(t, s, 0, 0)
	show(b, map[string]string{"code": "one\nfails"}, map[string]string{"code": "\n\ntwo\nfails"})
	b.Do(chromedp.Click(chromedp.CSS("label:has(#session-mode)")))
	b.Do(chromedp.Focus(chromedp.CSS(".cell")))
	for i := range 2 {
		b.Press("Enter", browser.Shift)
		b.Until(fmt.Sprintf(`document.querySelectorAll(".cell")[%d].querySelector(".traceback .link") !== null`, i))
	}
	require.Equal(t, []string{"Cell In[1], line 2", "Cell In[2], line 2"}, browser.Eval[[]string](b, `[...document.querySelectorAll(".traceback .link")].map((e) => e.textContent)`))
	for i, line := range []string{"2", "4"} {
		browser.Eval[bool](b, fmt.Sprintf(`document.querySelectorAll(".traceback .link")[%d].click(), true`, i))
		b.Until(fmt.Sprintf(`document.activeElement === document.querySelectorAll(".editor")[%d]`, i))
		editor := fmt.Sprintf(`document.querySelectorAll(".editor")[%d].shadowRoot`, i)
		require.Equal(t, line, browser.Eval[string](b, editor+`.querySelector(".cm-failing-number").textContent`))
		require.Equal(t, "fails", browser.Eval[string](b, `(() => { let n = `+editor+`.getSelection().anchorNode; return (n.closest ? n : n.parentElement).closest(".cm-line").textContent; })()`))
	}
	b.RequireQuiet(s.url)
}
