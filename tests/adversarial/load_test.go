package adversarial

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestEveryID: each bad input of the list has a case, or is named in
// testdata/elsewhere.txt with the test that shows it.
func TestEveryID(t *testing.T) {
	all, err := Load(os.DirFS("cases"))
	require.NoError(t, err)
	have := map[string]bool{}
	for _, c := range all {
		have[c.ID] = true
	}
	for _, line := range lines(t, "testdata/elsewhere.txt") {
		id, test, ok := strings.Cut(line, " ")
		require.True(t, ok, line)
		require.False(t, have[id], "%s is a case too", id)
		have[id] = true
		folder, name, ok := strings.Cut(test, " ")
		require.True(t, ok, "id, folder, name of the test: %s", line)
		require.Contains(t, tests(t, "../../"+folder), name)
	}
	var missing []string
	for _, id := range lines(t, "testdata/ids.txt") {
		if !have[id] {
			missing = append(missing, id)
		}
		delete(have, id)
	}
	require.Empty(t, missing, "ids without a case")
	require.Empty(t, have, "cases that the list does not have")
}

func lines(t *testing.T, file string) (out []string) {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// tests names the test functions of a folder.
func tests(t *testing.T, folder string) (out []string) {
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		raw, err := os.ReadFile(folder + "/" + e.Name())
		require.NoError(t, err)
		for line := range strings.Lines(string(raw)) {
			if rest, ok := strings.CutPrefix(line, "func Test"); ok {
				name, _, _ := strings.Cut(rest, "(")
				out = append(out, "Test"+name)
			}
		}
	}
	return out
}

// TestLoadRefuses what would be a case that tests nothing.
func TestLoadRefuses(t *testing.T) {
	const head = "id: A1\ntitle: x\nsource: y\n"
	for _, c := range []struct{ desc, file, text, says string }{
		{"a field that is not known", "A1-x.yaml", head + "requests: [{cod: x}]", "cod"},
		{"an expectation that is not known", "A1-x.yaml", head + "requests: [{code: x, expect: {runs: ok}}]", "runs"},
		{"a matcher that is not known", "A1-x.yaml", head + "requests: [{code: x, expect: {run: ok, text: {contain: x}}}]", "contain"},
		{"another id", "A2-x.yaml", head + "requests: [{code: x, expect: {run: ok}}]", "begins with"},
		{"nothing is sent", "A1-x.yaml", head, "sends nothing"},
		{"nothing is expected", "A1-x.yaml", head + "requests: [{code: x}]", "expects"},
		{"two bodies", "A1-x.yaml", head + "requests: [{code: x, raw: y, expect: {run: ok}}]", "several bodies"},
		{"no source", "A1-x.yaml", "id: A1\ntitle: x\nrequests: [{code: x, expect: {run: ok}}]", "source"},
		{"a pattern that is none", "A1-x.yaml", head + "requests: [{code: x, expect: {run: ok, text: {matches: '('}}}]", "missing closing"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := Load(fstest.MapFS{c.file: {Data: []byte(c.text)}})
			require.ErrorContains(t, err, c.says)
		})
	}
}
