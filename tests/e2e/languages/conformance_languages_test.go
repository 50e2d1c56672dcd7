package languages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/notebook"
)

// corpusOfEnvironment has a notebook a file, in the language of its folder. Cells come
// after lines of "%%"; what is before the first says what the notebook is about, with
// rules after "normalise:".
const corpusOfEnvironment = "../../../environments/%/testdata/conformance"

// leastOfEnvironment is how many notebooks a language has at the least.
const leastOfEnvironment = 3

var (
	cellMark = regexp.MustCompile(`(?m)^%%\n`)
	ruleMark = regexp.MustCompile(`(?m)^normalise: (.*)$`)
)

// TestConformanceOfEnvironments is TestConformance for the other languages: the kernels of
// their images, run by Jupyter's command line and by the service.
func TestConformanceOfEnvironments(t *testing.T) {
	t.Parallel()
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, e := range all[1:] {
		t.Run(e.Name, func(t *testing.T) {
			names, err := filepath.Glob(strings.Replace(corpusOfEnvironment, "%", e.Name, 1) + "/*.txt")
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(names), leastOfEnvironment)
			samples := map[string]sample{}
			for _, name := range names {
				samples[name] = readMarked(t, name, e)
			}
			requireAlike(t, &shared, e.Image, samples, e.Kernel.Env)
		})
	}
}

func readMarked(t *testing.T, name string, e environments.Environment) (s sample) {
	t.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	cells := cellMark.Split(string(raw), -1)
	require.NotEmpty(t, strings.TrimSpace(cells[0]), "says what it is about")
	if list := ruleMark.FindStringSubmatch(cells[0]); list != nil {
		s.rules = strings.Split(list[1], ", ")
	}
	cells = cells[1:]
	for i := range cells {
		cells[i] = strings.TrimSuffix(cells[i], "\n")
	}
	s.document, err = notebook.New(cells, notebook.Kernel{Name: e.Kernel.Name, DisplayName: e.DisplayName, Language: e.Language})
	require.NoError(t, err)
	return s
}
