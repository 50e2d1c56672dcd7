package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestReplyGolden shows what a caller sees, to the last field.
func TestReplyGolden(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC) }
	s := newService(t, func(c *Config) {
		store, err := storage.Open(context.Background(), storage.Options{URL: "mem://", Now: now})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		c.Store, c.Now, c.PublicURL = store, now, "https://code.example.org"
	})
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		require.NoError(t, events.File(ctx, "plots/a b.csv", strings.NewReader("a,b\n1,2\n")))
		out := executed(spec, runner.StatusError,
			stdout("loading 10%\rloading 100%\n"),
			`{"output_type":"stream","name":"stderr","text":"\u001b[31mred\u001b[0m\n"}`,
			`{"output_type":"display_data","metadata":{},"data":{"text/plain":"<Figure size 1x1>","image/png":"`+onePixel+`"}}`,
			`{"output_type":"display_data","metadata":{},"data":{"application/pdf":"JVBERi0xLjQKJSVFT0YK"}}`,
			`{"output_type":"execute_result","execution_count":1,"metadata":{},"data":{"text/plain":"   a  b","text/html":"<table></table>","application/json":{"a":[1,null]}}}`,
			raised("ZeroDivisionError", "division by zero"))
		out.Skipped = []runner.Skipped{{Path: "/mnt/data/pipe", Reason: "not a regular file"}}
		return out, nil
	}
	a := s.postJSON(`{"code":"1/0"}`)
	s.replied(a)
	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, a.body, "", "  "))
	text := regexp.MustCompile(`run_[0-9A-Z]{26}`).ReplaceAllString(got.String(), "run_ID")
	text = regexp.MustCompile(`signature=[\w-]+`).ReplaceAllString(text, "signature=SIGNATURE")
	golden := filepath.Join("testdata", "reply.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}
