package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// TestLanguageExamples sends examples/languages: there is one for each language, and it
// runs as a body of the language's own media type, and as an entrypoint.
func TestLanguageExamples(t *testing.T) {
	t.Parallel()
	var list struct {
		Environments []struct {
			Name      string
			Available bool
		}
	}
	_, raw := get(t, suite.program.url()+"/v1/environments")
	require.NoError(t, json.Unmarshal(raw, &list))
	available := map[string]bool{}
	for _, e := range list.Environments {
		available[e.Name] = e.Available
	}
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, e := range all {
		t.Run(e.Language, func(t *testing.T) {
			name := "average" + strings.ToLower(e.FileExtension)
			code, err := os.ReadFile("../../examples/languages/" + name)
			require.NoError(t, err)
			require.True(t, available[e.Name], "make images builds it")
			for _, mediaType := range e.MediaTypes {
				status, raw := post(t, suite.program.url()+"/v1/execute", mediaType, code)
				require.Equal(t, http.StatusOK, status, "%s", raw)
				var r reply
				decode(t, raw, &r)
				require.Equal(t, "mean: 4", strings.Replace(strings.TrimSpace(r.Text), "4.0", "4", 1))
			}
			if e.Entrypoint == "" {
				return
			}
			r := execute(t, map[string]any{"entrypoint": name, "files": []any{map[string]any{"name": name, "content": code}}})
			require.Equal(t, "ok", r.Status, "%s", r.Text)
			require.Contains(t, r.Text, "mean: 4")
		})
	}
}
