package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// endsScript is what would end a script element, or change how its end is found.
var endsScript = regexp.MustCompile(`(?i)<(/script|script|!--)`)

// inFrames are the scripts of frames, by the type of an output that needs one.
var inFrames = map[string]string{
	`"application/vnd.plotly.v1+json"`:           "plotly.js",
	`"application/vnd.jupyter.widget-view+json"`: "widgets.js",
}

// WriteRecord writes one run as a page that needs no service and no network. run is JSON, as
// source/outputs/recorded.ts has it: the cells with their outputs as a reply has them, and the
// images with their data. What the page downloads as .html is the same.
func (p *Page) WriteRecord(w io.Writer, run []byte) error {
	var scripts strings.Builder
	for _, needed := range []string{"plotly.js", "widgets.js"} {
		for mediaType, name := range inFrames {
			if name == needed && bytes.Contains(run, []byte(mediaType)) {
				fmt.Fprintf(&scripts, "<script type=\"text/plain\" id=\"script-%s\">%s</script>\n", name, inScript(p.assets[name].Plain()))
			}
		}
	}
	frame, err := json.Marshal(string(frameHTML)) // with every "<" escaped
	if err != nil {
		return fmt.Errorf("page: a record: %w", err)
	}
	_, err = strings.NewReplacer(
		"{style}", string(p.assets["outputs.css"].Plain()),
		"{run}", strings.ReplaceAll(string(run), "<", `\u003c`),
		"{frame}", string(frame),
		"{scripts}", scripts.String(),
		"{record}", inScript(p.assets["record.js"].Plain()),
	).WriteString(w, string(recordHTML))
	return err
}

func inScript(text []byte) string {
	return endsScript.ReplaceAllString(string(text), `\u003c$1`)
}
