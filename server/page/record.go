package page

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"

	"notebox/server/asset"
)

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

// WriteRecord writes a record: record.txt with four places filled in. What the page downloads
// as .html is the same; see source/download.ts.
func (p *Page) WriteRecord(w io.Writer, r Record) error {
	left := string(p.assets["record.txt"].Plain())
	for _, place := range []struct {
		name  string
		write func() error
	}{
		{"{title}", func() error { return writeString(w, html.EscapeString(r.Title)) }},
		{"{head}", func() error { return writeString(w, r.Head) }},
		{"{run}", func() error { _, err := io.Copy(escaped{w}, r.Run); return err }},
		{"{scripts}", func() error {
			return errors.Join(p.writeScript(w, "plotly.js", r.Plots), p.writeScript(w, "widgets.js", r.Widgets))
		}},
	} {
		before, after, _ := strings.Cut(left, place.name)
		if err := writeString(w, before); err != nil {
			return err
		}
		if err := place.write(); err != nil {
			return err
		}
		left = after
	}
	return writeString(w, left)
}

func writeString(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// writeScript writes what frames need for some outputs. Each is megabytes, and made once.
func (p *Page) writeScript(w io.Writer, name string, needed bool) error {
	if !needed {
		return nil
	}
	made, _ := p.scripts.LoadOrStore(name, sync.OnceValue(func() string {
		text, _ := json.Marshal(string(p.assets[name].Plain())) // a string, with every "<" escaped
		return `<script type="application/json" id="script-` + name + `">` + string(text) + "</script>\n"
	}))
	return writeString(w, made.(func() string)())
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
