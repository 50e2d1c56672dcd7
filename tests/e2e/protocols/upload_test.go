package protocols

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// TestKeptFiles are sent once and read by several runs.
func TestKeptFiles(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789", 1<<20)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, content := range map[string]string{"table.csv": "a,b\n1,2\n", "big.bin": big} {
		part, err := w.CreateFormFile("files", name)
		require.NoError(t, err)
		_, err = part.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	status, raw := service.Post(t, shared.URL+"/v1/files", w.FormDataContentType(), form.Bytes())
	require.Equal(t, http.StatusCreated, status, "%s", raw)
	var kept []struct {
		ID, Name, SHA256 string
		Bytes            int
		MediaType        string    `json:"media_type"`
		ExpiresAt        time.Time `json:"expires_at"`
	}
	service.Decode(t, raw, &kept)
	require.Len(t, kept, 2)
	var files []map[string]any
	for _, k := range kept {
		require.WithinRange(t, k.ExpiresAt, time.Now().Add(6*24*time.Hour), time.Now().Add(7*24*time.Hour))
		files = append(files, map[string]any{"name": "in/" + k.Name, "id": k.ID})
	}
	for range 2 {
		r := shared.Execute(t, map[string]any{"files": files, "code": `import hashlib, os
for name in sorted(os.listdir('in')):
    content = open('in/' + name, 'rb').read()
    print(name, len(content), hashlib.sha256(content).hexdigest())`})
		require.Equal(t, "ok", r.Status, r.Text)
		require.Empty(t, r.Files, "inputs do not come back")
		for _, k := range kept {
			require.Contains(t, r.Text, fmt.Sprintf("%s %d %s\n", k.Name, k.Bytes, k.SHA256))
		}
	}
}
