package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMisspeltVariables: what is set and not used is said at the start, with what it may mean.
// What Kubernetes sets by itself is no mistake.
func TestMisspeltVariables(t *testing.T) {
	for _, c := range []struct {
		desc, entry string
		meant       string // "-": no warning; "": a warning that names no other
	}{
		{"a flag's", "NOTEBOX_MAX_BODY=1", "-"},
		{"a letter too little", "NOTEBOX_MAX_BDY=1", "NOTEBOX_MAX_BODY"},
		{"no _ between", "NOTEBOX_MAXBODY=1", "NOTEBOX_MAX_BODY"},
		{"a plural", "NOTEBOX_POOLS_SIZES=1", "NOTEBOX_POOL_SIZE"},
		{"half of a name", "NOTEBOX_API_KEYS=x", "NOTEBOX_API_KEYS_FILE"},
		{"like none", "NOTEBOX_COLOUR_OF_THE_WALLS=1", ""},
		{"a port of its own", "NOTEBOX_PORT=8080", ""},
		{"empty", "NOTEBOX_MAX_BDY=", "-"},
		{"another program's", "NOTEBOOK_MAX_BDY=1", "-"},
		{"another command's", "NOTEBOX_DISCORD_GUILDS=1", "-"},
		{"notebox mcp's", "NOTEBOX_MCP_URL=http://x", "-"},
		{"a client's", "NOTEBOX_API_KEY=x", "-"},
		{"Kubernetes' address", "NOTEBOX_PORT=tcp://10.0.0.1:8080", "-"},
		{"Kubernetes' host", "NOTEBOX_SERVICE_HOST=10.0.0.1", "-"},
		{"Kubernetes' port", "NOTEBOX_SERVICE_PORT=8080", "-"},
		{"Kubernetes' named port", "NOTEBOX_SERVICE_PORT_HTTP=8080", "-"},
		{"Kubernetes' links", "NOTEBOX_PORT_8080_TCP=tcp://10.0.0.1:8080", "-"},
		{"Kubernetes' addresses", "NOTEBOX_PORT_8080_TCP_ADDR=10.0.0.1", "-"},
		{"Kubernetes' other service", "NOTEBOX_CANARY_PORT=tcp://10.0.0.1:8080", "-"},
		{"Kubernetes' other service's port", "NOTEBOX_CANARY_SERVICE_PORT_METRICS=8080", "-"},
	} {
		for _, from := range []string{"environment", ".env"} {
			t.Run(c.desc+", "+from, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), ".env")
				environ := []string{c.entry}
				if from == ".env" {
					require.NoError(t, os.WriteFile(file, []byte(c.entry+"\n"), 0o600))
					environ = nil
				}
				var logged bytes.Buffer
				warnOfVariables(slog.New(slog.NewTextHandler(&logged, nil)), serveCommand().FlagSet, environ, file)
				switch c.meant {
				case "-":
					require.Empty(t, logged.String())
				case "":
					require.Contains(t, logged.String(), "is passed over")
					require.NotContains(t, logged.String(), "meant")
				default:
					require.Contains(t, logged.String(), "meant="+c.meant+"\n")
				}
			})
		}
	}
}
