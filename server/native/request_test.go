package native

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/executor/intake"
	"notebox/server/body"
)

func TestLargeInputsAreNotKeptInMemory(t *testing.T) {
	in, err := intake.New(t.TempDir(), 1, func() bool { return false }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	work := in.Aside()
	content := strings.Repeat("QUFB", intake.SpoolMemory) // of three bytes each
	req := &request{Files: []body.File{
		{Name: new(body.Text("small")), Content: new(body.Text("QUFB"))},
		{Name: new(body.Text("large")), Content: new(body.Text(content))},
	}}
	require.NoError(t, req.Files.MoveTo(&req.inputs, work))
	files := map[string]string{}
	for _, input := range req.inputs.Spec() {
		f, err := input.Open()
		require.NoError(t, err)
		raw, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, input.Size, int64(len(raw)))
		files[input.Path] = string(raw)
	}
	require.Equal(t, map[string]string{"small": "AAA", "large": strings.Repeat("AAA", intake.SpoolMemory)}, files)
	require.Nil(t, req.inputs.List[1].Data)
}
