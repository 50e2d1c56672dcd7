package languages

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/tests/e2e/service"
)

// TestLanguageExamples sends examples/languages: there is one for each language, and it
// runs as a body of the language's own media type, and as an entrypoint.
func TestLanguageExamples(t *testing.T) {
	t.Parallel()
	available := shared.Available(t)
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, e := range all {
		t.Run(e.Language, func(t *testing.T) {
			name := "average" + strings.ToLower(e.FileExtension)
			code, err := os.ReadFile("../../../examples/languages/" + name)
			require.NoError(t, err)
			require.True(t, available[e.Name], "make images builds it")
			for _, mediaType := range e.MediaTypes {
				status, raw := service.Post(t, shared.URL+"/v1/execute", mediaType, code)
				require.Equal(t, http.StatusOK, status, "%s", raw)
				var r service.Reply
				service.Decode(t, raw, &r)
				require.Equal(t, "mean: 4", strings.Replace(strings.TrimSpace(r.Text), "4.0", "4", 1))
			}
			if e.Entrypoint == "" {
				return
			}
			r := shared.Execute(t, map[string]any{"entrypoint": name, "files": []any{map[string]any{"name": name, "content": code}}})
			require.Equal(t, "ok", r.Status, "%s", r.Text)
			require.Contains(t, r.Text, "mean: 4")
		})
	}
}
