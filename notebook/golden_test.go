package notebook_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

var update = flag.Bool("update", false, "write the golden files")

// The samples were executed by jupyter nbconvert; see testdata/samples.py.
func TestDecodeOfRealNotebooks(t *testing.T) {
	for _, name := range []string{"rich", "streams", "errors-ipython8", "errors-ipython9"} {
		t.Run(name, func(t *testing.T) {
			result, err := notebook.Decode(sample(t, name), notebook.Limits{})
			require.NoError(t, err)
			golden(t, name+".golden", dump(t, result))
			golden(t, name+".golden.txt", []byte(notebook.Text(result, exampleURL)))
		})
	}
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".ipynb"))
	require.NoError(t, err)
	return raw
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func exampleURL(b *notebook.Blob) string { return "https://example.org/" + b.Name }

// dump renders a result for comparison, blobs as their digest.
func dump(t *testing.T, r *notebook.Result) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range r.Outputs {
		fmt.Fprintf(&out, "cell %d %s", o.Cell, o.Type)
		if o.Name != "" {
			fmt.Fprintf(&out, " %s", o.Name)
		}
		out.WriteByte('\n')
		for _, text := range []string{o.Text, o.Message, o.Traceback} {
			if text != "" {
				indent(&out, text)
			}
		}
		data := map[string]any{}
		for mediaType, datum := range o.Data {
			switch {
			case datum.Text != nil:
				data[mediaType] = *datum.Text
			case datum.JSON != nil:
				data[mediaType] = datum.JSON
			case datum.Blob != nil:
				b := datum.Blob
				data[mediaType] = fmt.Sprintf("%s %s %d bytes %dx%d sha256 %.8x", b.Name, b.MediaType, len(b.Bytes), b.Width, b.Height, sha256.Sum256(b.Bytes))
			}
		}
		if len(data) > 0 {
			enc := json.NewEncoder(&out)
			enc.SetEscapeHTML(false)
			enc.SetIndent("  ", "  ")
			require.NoError(t, enc.Encode(data))
		}
	}
	if e := r.Error; e != nil {
		fmt.Fprintf(&out, "ERROR cell %d line %d %s: %s\n", e.Cell, e.Line, e.Name, e.Message)
	}
	for _, d := range r.Dropped {
		fmt.Fprintf(&out, "DROPPED cell %d %s: %s\n", d.Cell, d.MediaType, d.Reason)
	}
	fmt.Fprintf(&out, "TRUNCATED %v\n", r.Truncated)
	return out.Bytes()
}

func indent(out *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(out, "  | %q\n", line)
	}
}
