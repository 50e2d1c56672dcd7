package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/server/page"
	"notebox/tests/browser"
)

// TestARecordNeedsNoService: a run in a file of its own shows all that came out, and what is
// hostile in it is as it is in the page.
func TestARecordNeedsNoService(t *testing.T) {
	t.Parallel()
	e := newEnemy(t)
	hostile := strings.ReplaceAll(e.attack(), "SERVICE", "http://"+e.address)
	run, err := json.Marshal(map[string]any{
		"title": "A <run>", "language": "python", "status": "error", "hint": "", "usage": nil,
		"images": []any{map[string]any{"name": "image_0.png", "media_type": "image/png", "data": strings.TrimSpace(onePixel)}},
		"error":  map[string]any{"name": "ValueError", "message": "x", "traceback": "", "cell": 0, "line": 2},
		"cells": []any{
			map[string]any{"kind": "markdown", "text": "# Title\n\n$x^2$<script>window.pwned=true</script>", "outputs": []any{}},
			map[string]any{"kind": "code", "text": "print('</script><script>window.pwned=true</script>')\nraise ValueError('x')", "outputs": []any{
				map[string]any{"cell": 0, "type": "stream", "name": "stdout", "text": "</script><script>window.pwned=true</script>\n"},
				map[string]any{"cell": 0, "type": "display", "data": map[string]any{"image/png": map[string]any{"name": "image_0.png", "url": "http://" + e.address + "/x.png"}}},
				map[string]any{"cell": 0, "type": "display", "data": map[string]any{"application/vnd.plotly.v1+json": map[string]any{"data": []any{map[string]any{"y": []int{1, 3}}}, "layout": map[string]any{"height": 321}}}},
				map[string]any{"cell": 0, "type": "display", "data": map[string]any{"text/html": "<p id=\"ran\">x</p><script>" + hostile + "</script>"}},
				map[string]any{"cell": 0, "type": "error", "name": "ValueError", "message": "x", "traceback": "Cell In[1], line 2\nValueError: x"},
			}},
		},
	})
	require.NoError(t, err)
	p, err := page.New()
	require.NoError(t, err)
	var record bytes.Buffer
	require.NoError(t, p.WriteRecord(&record, page.Record{Title: "A <run>", Run: bytes.NewReader(run), Plots: true}))
	file := filepath.Join(t.TempDir(), "run.html")
	require.NoError(t, os.WriteFile(file, record.Bytes(), 0o600))

	b := browser.New(t, 1000, 2400)
	b.Do(chromedp.Navigate("file://" + file))
	b.Until(`document.querySelectorAll("iframe").length === 2 && document.querySelector(".outputs img")?.naturalWidth === 1`)
	b.Until(`document.querySelector("iframe").height === "321"`) // Plotly has drawn
	b.Until(`document.querySelector(".markdown math") !== null`)
	require.Equal(t, "A <run>", browser.Eval[string](b, `document.title`))
	require.Equal(t, "raise ValueError('x')\n", browser.Eval[string](b, `document.querySelector(".source-line.failing").textContent`))
	b.Until(`document.querySelector(".stream").textContent === "<\/script><script>window.pwned=true<\/script>\n"`)
	require.Equal(t, "null", browser.Eval[string](b, `String(window.pwned ?? null)`))
	b.Shoot("record")
	time.Sleep(3 * time.Second) // what the attack began has had its time
	require.Greater(t, browser.Eval[int](b, `document.querySelectorAll("iframe")[1].clientHeight`), 200, "the attack, which adds elements, has run")
	require.Zero(t, e.visits.Load(), "another host was reached")
}
