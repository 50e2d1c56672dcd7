package page

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"notebox/server/asset"
)

// endsScript is what would end a script element, or change how its end is found.
var endsScript = regexp.MustCompile(`(?i)<(/script|script|!--)`)

// The types of outputs that need large scripts in their frames.
const (
	PlotlyType = "application/vnd.plotly.v1+json"
	WidgetType = "application/vnd.jupyter.widget-view+json"
)

// Record is one run, to be written as a page that needs no service and no network.
type Record struct {
	Title string
	Head  string // more HTML for the head: what in it is of the run is escaped
	// Run is JSON, as source/outputs/recorded.ts has it: the cells with their outputs as a
	// reply has them, and the images with their data. Package record makes it.
	Run            io.Reader
	Plots, Widgets bool // whether it has outputs of PlotlyType, and of WidgetType
}

// WriteRecord writes a record. What the page downloads as .html is the same.
func (p *Page) WriteRecord(w io.Writer, r Record) error {
	frame, err := json.Marshal(string(frameHTML)) // with every "<" escaped
	if err != nil {
		return fmt.Errorf("page: a record: %w", err)
	}
	fill := strings.NewReplacer(
		"{title}", html.EscapeString(r.Title),
		"{head}", r.Head,
		"{style}", string(p.assets["outputs.css"].Plain()),
		"{frame}", string(frame),
		"{record}", p.script("record.js"),
	)
	before, after, _ := strings.Cut(string(recordHTML), "{run}")
	after, last, _ := strings.Cut(after, "{scripts}")
	if _, err := fill.WriteString(w, before); err != nil {
		return err
	}
	if _, err := io.Copy(escaped{w}, r.Run); err != nil {
		return err
	}
	if _, err := fill.WriteString(w, after); err != nil {
		return err
	}
	for _, s := range []struct {
		name   string
		needed bool
	}{{"plotly.js", r.Plots}, {"widgets.js", r.Widgets}} {
		if !s.needed {
			continue
		}
		for _, part := range []string{`<script type="text/plain" id="script-`, s.name, `">`, p.script(s.name), "</script>\n"} {
			if _, err := io.WriteString(w, part); err != nil {
				return err
			}
		}
	}
	_, err = fill.WriteString(w, last)
	return err
}

// script is one of the assets as a script element holds it. Each is megabytes, and made once.
func (p *Page) script(name string) string {
	made, _ := p.scripts.LoadOrStore(name, sync.OnceValue(func() string { return inScript(p.assets[name].Plain()) }))
	return made.(func() string)()
}

// escaped writes JSON so that nothing in it ends a script element.
type escaped struct{ io.Writer }

func (e escaped) Write(p []byte) (int, error) {
	if bytes.IndexByte(p, '<') < 0 {
		return e.Writer.Write(p)
	}
	if _, err := e.Writer.Write(bytes.ReplaceAll(p, []byte("<"), []byte(`\u003c`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func inScript(text []byte) string {
	return endsScript.ReplaceAllString(string(text), `\u003c$1`)
}

// ServeRecord answers with a record: a page with an origin of its own, which reaches neither
// this service's keys nor any network. It is not kept, as it can be revoked, and not to be
// found by a search.
func (p *Page) ServeRecord(w http.ResponseWriter, r *http.Request, record Record) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", recordPolicy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	unconnected(h, "(response-origin)") // where a person goes to run it again, or to save a file
	h.Add("Vary", "Accept-Encoding")
	if r.Method == http.MethodHead {
		return nil
	}
	if !asset.AcceptsGzip(r.Header.Values("Accept-Encoding")) {
		return p.WriteRecord(w, record)
	}
	h.Set("Content-Encoding", "gzip")
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed) // each view is packed anew
	if err != nil {
		return fmt.Errorf("page: a record: %w", err)
	}
	if err := p.WriteRecord(packed, record); err != nil {
		return err
	}
	return packed.Close()
}
