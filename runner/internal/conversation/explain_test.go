package conversation_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// TestExplainExit: of a harness that failed with a job, the log has the places of
// its traceback, and nothing that it quotes.
func TestExplainExit(t *testing.T) {
	const traceback = `Traceback (most recent call last):
  File "/opt/notebox/harness/serve.py", line 64, in main
    serve(reader, writer)
  File "/opt/venv/lib/python3.13/site-packages/nbformat/reader.py", line 345, in <module>
    secret = "secret"
  File "/mnt/data/secret.py", line 1, in secret
json.decoder.JSONDecodeError: secret
`
	var out bytes.Buffer
	err := fmt.Errorf("read: %w", &runner.ExitError{Code: 1, Log: traceback})
	require.Equal(t, err, conversation.ExplainExitOfRun(err, slog.New(slog.NewTextHandler(&out, nil)).With("run", "run_1")))
	require.Contains(t, out.String(), "run=run_1 exit_code=1")
	require.Contains(t, out.String(), "/opt/notebox/harness/serve.py")
	require.Contains(t, out.String(), "line 345, in <module>")
	require.NotContains(t, out.String(), "secret")

	out.Reset()
	other := errors.New("gone")
	require.Equal(t, other, conversation.ExplainExitOfRun(other, slog.New(slog.NewTextHandler(&out, nil))))
	require.Empty(t, out.String(), "who did not exit is not explained")
}
