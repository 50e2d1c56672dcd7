package adversarial

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
)

var fileChecks = map[string]Check{
	"files_hold_their_names": filesHoldTheirNames,
	"skipped_in_number":      skippedInNumber,
}

// dataFolder is where files are in a sandbox.
const dataFolder = "/mnt/data/"

// maxSkippedEntries are the hundred that are named, and the line that counts the rest.
const maxSkippedEntries = 101

// skippedInNumber sends the case, and counts what is said to be left behind.
func skippedInNumber(ctx context.Context, t *Trial) []Failure {
	answers, out := t.SendAll(ctx)
	for _, a := range answers {
		if a.Reply != nil && len(a.Reply.Skipped) != maxSkippedEntries {
			out = append(out, Failure{Text: fmt.Sprintf("skipped has %d entries, not %d", len(a.Reply.Skipped), maxSkippedEntries)})
		}
	}
	return out
}

// filesHoldTheirNames sends the case, whose code writes into each file its name, and
// downloads each by its link. What is served is that file, and its name is nowhere but
// where it belongs: no header of its own, no line in the log.
func filesHoldTheirNames(ctx context.Context, t *Trial) []Failure {
	answers, out := t.SendAll(ctx)
	if len(answers) == 0 || answers[0].Reply == nil {
		return out
	}
	files := answers[0].Reply.Files
	wrote := regexp.MustCompile(`(?s)names = \[(.*?)\]\n`).FindString(t.Attempt.Requests[0].Code)
	if len(files) < strings.Count(wrote, ",")/2 {
		out = append(out, Failure{Text: fmt.Sprintf("there are %d files", len(files))})
	}
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.URL] {
			out = append(out, Failure{Text: fmt.Sprintf("two files have the link %s", f.URL)})
		}
		seen[f.URL] = true
		got, err := t.Client.Send(ctx, &Request{Method: http.MethodGet, Path: "{file:" + f.Path + "}"}, answers[0])
		if err != nil {
			out = append(out, Failure{Text: fmt.Sprintf("%q: %v", f.Path, err)})
			continue
		}
		out = append(out, servedWrong(f, got[0])...)
	}
	log, err := os.ReadFile(t.Service.Log())
	if err != nil || bytes.Contains(log, []byte("\nlevel=ERROR msg=injected")) {
		out = append(out, Failure{Text: fmt.Sprintf("the log has a line of the code's: %v", err)})
	}
	return out
}

func servedWrong(f Named, a *Answer) (out []Failure) {
	wrong := func(format string, args ...any) {
		out = append(out, Failure{Text: fmt.Sprintf("%q: ", f.Path) + fmt.Sprintf(format, args...)})
	}
	if name := strings.TrimPrefix(f.Path, dataFolder); a.Status != http.StatusOK || string(a.Body) != name {
		wrong("HTTP %d with %s", a.Status, shown(string(a.Body)))
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "sandbox; default-src 'none'",
		"Set-Cookie":              "",
	} {
		if have := a.Header.Get(name); have != want {
			wrong("the header %s is %q", name, have)
		}
	}
	if have := a.Header.Values("Content-Disposition"); len(have) != 1 || !printableASCII.MatchString(have[0]) {
		wrong("Content-Disposition is %q", have)
	}
	return out
}

// printableASCII is an attachment: none of these names is an image's.
var printableASCII = regexp.MustCompile(`^attachment; filename="[ -!#-\[\]-~]*"(; filename\*=UTF-8''[!-~]+)?$`)
