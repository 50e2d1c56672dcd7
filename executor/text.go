package executor

import (
	"context"
	"fmt"
	"strings"

	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
	"notebox/storage"
)

const (
	// maxText bounds the text of a reply, in bytes: more than models take of one run, and
	// less than what a print in a loop makes. The outputs have all of it.
	maxText = 256 << 10
	// textName is what a longer text is stored as, beside the images.
	textName = "text.txt"
	// markRoom is what the mark of a cut may take, in bytes.
	markRoom = 64
)

// shorten cuts what is longer than maxText in its middle. Its last line is then a link to
// the whole.
func shorten(ctx context.Context, k *keeper, text string) string {
	if len(text) <= maxText {
		return text
	}
	url, lost := k.keep(ctx, storeTime, storage.KindImage, textName, []byte(text))
	last := fmt.Sprintf("[the whole text: %s]\n", url)
	if lost != nil {
		last = fmt.Sprintf("[the whole text: %s]\n", lost.text)
	}
	return endLine(notebook.Shorten(text, int64(maxText-markRoom-len(last)))) + last
}

// saveBelow is the reason by which the harness names files that are written beside
// /mnt/data.
const saveBelow = "save it below /mnt/data"

// elsewhereNames is how many of them a text names: enough for those that a person means.
const elsewhereNames = 5

// elsewhere says in one line what was written where nobody gets it; "" for nothing.
func elsewhere(skipped []runner.Skipped) string {
	var names []string
	more := false
	for _, s := range skipped {
		switch {
		case strings.HasPrefix(s.Path, runner.DataFolder+"/") || !strings.HasSuffix(s.Reason, saveBelow):
		case s.Reason != saveBelow || len(names) == elsewhereNames:
			more = true
		default:
			names = append(names, problem.OneLine(s.Path))
		}
	}
	if len(names) == 0 {
		return ""
	}
	listed := strings.Join(names, ", ")
	if more {
		listed += " and others"
	}
	return "[not returned: " + listed + "; save files below " + runner.DataFolder + "]\n"
}
