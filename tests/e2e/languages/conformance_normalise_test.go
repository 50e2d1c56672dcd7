package languages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// object is a JSON object as encoding/json decodes it.
type object = map[string]any

// rule makes two executions of one notebook equal where no two executions are.
// A notebook names the rules that it needs; if it does not, a difference of
// that kind fails.
type rule struct {
	pattern *regexp.Regexp           // replaced in all texts of outputs …
	by      string                   // … by this
	apply   func(doc, source object) // what is no replacement in texts
}

// rules are all that a notebook may name.
var rules = map[string]rule{
	// ipykernel keeps a buffer for stdout and one for stderr, and sends each when
	// a timer says so: how the two interleave is a matter of time. Between two
	// outputs of another kind, which empty both buffers, all of stdout is put
	// before all of stderr.
	"stream-order": {apply: func(doc, _ object) { eachOutputs(doc, stdoutFirst) }},

	// The address of a function or object, in its default representation.
	"addresses": {pattern: regexp.MustCompile(`\b0x[0-9a-f]{8,16}\b`), by: "0x…"},

	// A cell's file name, as warnings show it, contains the kernel's process id,
	// as does Python's warning of fork; and a variable has that of its parent.
	"pids": {pattern: regexp.MustCompile(`(/tmp/ipykernel_|\(pid=|'JPY_PARENT_PID': ')\d+`), by: "${1}PID"},

	// Each sandbox has a user of its own.
	"user-ids": {pattern: regexp.MustCompile(`\(\d{5}, \d{5}, `), by: "(UID, GID, "},

	// If a whole stack is shown, it begins with how the kernel was started: by
	// "python -m ipykernel_launcher", or by the harness's launch.py.
	"start-frames": {
		pattern: regexp.MustCompile(`(?s)  File "(<frozen runpy>|/opt/notebox/launch.py)".*?(  File "[^"]*/traitlets/config/application.py")`),
		by:      "START\n$2",
	},

	// Below a print is the harness's OutStream.write, and below the showing of an exception
	// its ZMQInteractiveShell._showtraceback. They call ipykernel's.
	"write-frame": {apply: func(doc, _ object) { eachOutputs(doc, withoutWriteFrame) }},

	// Jupyter makes the file with the kernel's ports anew for each kernel.
	"connection-file": {pattern: regexp.MustCompile(`/tmp/tmp\w{8}\.json|/run/notebox/kernel-\w{8}/kernel\.json`), by: "/tmp/CONNECTION.json"},

	// gonb gives the module that it makes of a session's cells a name by chance.
	"gonb-modules": {pattern: regexp.MustCompile(`\bgonb_[0-9a-f]{8}\b`), by: "gonb_ID"},

	// What %time measured.
	"durations": {pattern: regexp.MustCompile(`\d+(\.\d+)?(e[+-]\d+)? (ns|[µμu]s|ms|s)\b`), by: "TIME"},

	// statsmodels prints the date and the time of day into its tables.
	"statsmodels-clock": {pattern: regexp.MustCompile(`[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4}|\d{2}:\d{2}:\d{2}`), by: "CLOCK"},

	// pandas gives the elements of each styled table a random prefix.
	"styler-ids": {pattern: regexp.MustCompile(`\bT_[0-9a-f]{5}(_|\b)`), by: "T_ID$1"},

	// plotly gives the element of each figure a random id.
	"uuids": {pattern: regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), by: "UUID"},

	// A display that was asked to find an id for itself.
	"display-ids": {pattern: regexp.MustCompile(`display_id=[0-9a-f]{32}\b`), by: "display_id=ID"},

	// The id of a comm is random, in the notebook's metadata and in texts.
	"comm-ids": {pattern: regexp.MustCompile(`\b[0-9a-f]{32}\b`), by: "COMM", apply: commIDs},

	// A cell that came without an id gets one, which each side makes in its own way.
	"cell-ids": {apply: cellIDs},

	// Of cells that are not run Jupyter keeps what an earlier run left in them; the
	// service clears it, so that nothing in a result is of another run.
	"old-outputs": {apply: withoutOldOutputs},

	// What behaves as in a script: asyncio.run works, which Jupyter refuses, sys.argv is a
	// program's and not the kernel's, and exit(3) ends a process with that code. Cells that begin so say it; TestAsInAScript has what
	// they come to.
	"as-a-script": {apply: func(doc, source object) {
		for i, cell := range source["cells"].([]any) {
			if strings.HasPrefix(joined(cell.(object)["source"]), "# as a script\n") {
				doc["cells"].([]any)[i].(object)["outputs"] = []any{}
			}
		}
	}},

	// Jupyter repeats what a notebook says of the kernel, also if that is
	// wrong; the service writes which one it was.
	"kernelspec": {apply: func(doc, _ object) { delete(doc["metadata"].(object), "kernelspec") }},
}

// normalised decodes an executed notebook and takes from it what differs by
// nature in all: times, and where a stream was cut into pieces. And then what
// its sample names.
//
// Decoding is a normalisation as well: lone surrogates become U+FFFD. Jupyter
// writes them as JSON escapes, which are not Unicode and which many readers
// refuse; the service writes U+FFFD.
func normalised(t *testing.T, s sample, executed []byte) object {
	t.Helper()
	doc, source := decodeNotebook(t, executed), decodeNotebook(t, s.document)
	for _, cell := range doc["cells"].([]any) {
		// When each message came. Which ones came is compared.
		if times, ok := cell.(object)["metadata"].(object)["execution"].(object); ok {
			for name := range times {
				times[name] = "TIME"
			}
		}
	}
	// A piece is what was printed until a timer ended: its length is a time.
	eachOutputs(doc, mergeStreams)
	for _, name := range s.rules {
		r, ok := rules[name]
		require.True(t, ok, "no rule %q", name)
		if r.apply != nil {
			r.apply(doc, source)
		}
		if r.pattern != nil {
			eachOutputs(doc, func(outputs []any) []any {
				return replaceTexts(outputs, r.pattern, r.by).([]any)
			})
		}
	}
	return doc
}

func decodeNotebook(t *testing.T, raw []byte) object {
	t.Helper()
	var doc object
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // 1 and 1.0 are not equal
	require.NoError(t, d.Decode(&doc), "%.2000s", raw)
	return doc
}

// eachOutputs replaces the outputs of each code cell by f's.
func eachOutputs(doc object, f func([]any) []any) {
	for _, cell := range doc["cells"].([]any) {
		if outputs, ok := cell.(object)["outputs"].([]any); ok {
			cell.(object)["outputs"] = f(outputs)
		}
	}
}

// mergeStreams makes one output of each row of streams of the same name.
func mergeStreams(outputs []any) []any {
	var out []any
	for _, o := range outputs {
		o := o.(object)
		if o["output_type"] != "stream" {
			out = append(out, o)
			continue
		}
		o["text"] = joined(o["text"])
		if len(out) > 0 {
			if last := out[len(out)-1].(object); last["output_type"] == "stream" && last["name"] == o["name"] {
				last["text"] = last["text"].(string) + o["text"].(string)
				continue
			}
		}
		out = append(out, o)
	}
	return out
}

// stdoutFirst sorts each row of streams by their names, and merges again.
func stdoutFirst(outputs []any) []any {
	isStderr := func(o any) bool { return o.(object)["name"] == "stderr" }
	for start := 0; start < len(outputs); start++ {
		end := start
		for end < len(outputs) && outputs[end].(object)["output_type"] == "stream" {
			end++
		}
		slices.SortStableFunc(outputs[start:end], func(a, b any) int {
			switch {
			case isStderr(a) == isStderr(b):
				return 0
			case isStderr(a):
				return 1
			}
			return -1
		})
		start = end
	}
	return mergeStreams(outputs)
}

// withoutWriteFrame takes the harness's own frames out of tracebacks.
func withoutWriteFrame(outputs []any) []any {
	for _, o := range outputs {
		if frames, ok := o.(object)["traceback"].([]any); ok {
			o.(object)["traceback"] = slices.DeleteFunc(frames, func(f any) bool {
				return strings.Contains(f.(string), "/opt/notebox/harness/kernel/application.py") &&
					(strings.Contains(f.(string), "OutStream.write") || strings.Contains(f.(string), "ZMQInteractiveShell._showtraceback"))
			})
		}
	}
	return outputs
}

// joined is a text that nbformat may write as a list of lines.
func joined(text any) string {
	lines, ok := text.([]any)
	if !ok {
		return text.(string)
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line.(string))
	}
	return b.String()
}

func replaceTexts(v any, pattern *regexp.Regexp, by string) any {
	switch v := v.(type) {
	case string:
		return pattern.ReplaceAllString(v, by)
	case []any:
		for i := range v {
			v[i] = replaceTexts(v[i], pattern, by)
		}
	case object:
		for k := range v {
			v[k] = replaceTexts(v[k], pattern, by)
		}
	}
	return v
}

func commIDs(doc, _ object) {
	widgets, ok := doc["metadata"].(object)["widgets"].(object)
	if !ok {
		return
	}
	for _, view := range widgets {
		state := view.(object)["state"].(object)
		for n, id := range slices.Sorted(maps.Keys(state)) {
			state[fmt.Sprintf("COMM-%d", n)] = state[id]
			delete(state, id)
		}
	}
}

// cellIDs hides the ids of cells that had none, or one that an earlier cell
// has, as far as no other cell has it now.
func cellIDs(doc, source object) {
	cells, had, have := doc["cells"].([]any), map[any]bool{}, map[any]int{}
	for _, cell := range cells {
		have[cell.(object)["id"]]++
	}
	for i, cell := range source["cells"].([]any) {
		before, ok := cell.(object)["id"]
		if id, there := cells[i].(object)["id"]; there && have[id] == 1 && (!ok || had[before]) {
			cells[i].(object)["id"] = "ID"
		}
		had[before] = true
	}
}

// withoutOldOutputs clears the cells that nbclient does not run.
func withoutOldOutputs(doc, _ object) {
	for _, cell := range doc["cells"].([]any) {
		cell := cell.(object)
		tags, _ := cell["metadata"].(object)["tags"].([]any)
		if strings.TrimSpace(joined(cell["source"])) == "" || slices.Contains(tags, any("skip-execution")) {
			cell["outputs"], cell["execution_count"] = []any{}, nil
		}
	}
}

// difference says where two JSON values first differ, and how; "" if they
// are equal.
func difference(path string, want, got any) string {
	switch w := want.(type) {
	case object:
		g, ok := got.(object)
		if !ok {
			break
		}
		names := maps.Clone(w)
		maps.Copy(names, g)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			_, inWant := w[name]
			_, inGot := g[name]
			if !inWant || !inGot {
				return fmt.Sprintf("%s.%s: there: %t, %t", path, name, inWant, inGot)
			}
			if d := difference(path+"."+name, w[name], g[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range min(len(w), len(g)) {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		if len(w) != len(g) {
			at := min(len(w), len(g))
			return fmt.Sprintf("%s: %d and %d entries; then\n%.500v\n%.500v", path, len(w), len(g), w[at:], g[at:])
		}
		return ""
	case string:
		g, ok := got.(string)
		if !ok {
			break
		}
		if w == g {
			return ""
		}
		from := 0
		for from < min(len(w), len(g)) && w[from] == g[from] {
			from++
		}
		from = max(0, from-80)
		return fmt.Sprintf("%s, from byte %d:\n%.400q\n%.400q", path, from, w[from:], g[from:])
	}
	if want == got {
		return ""
	}
	return fmt.Sprintf("%s:\n%.400v\n%.400v", path, want, got)
}
