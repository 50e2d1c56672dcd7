package server

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nodeModules are the official clients in TypeScript.
func nodeModules(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../.clients/node/node_modules")
	require.NoError(t, err)
	require.DirExists(t, path, "make clients installs them")
	return path
}

// TestMCPConformance runs the official suite. What it does not pass is in the baseline,
// of which an entry that passes is an error too; docs/mcp.md explains each.
func TestMCPConformance(t *testing.T) {
	s := newService(t, func(c *Config) { c.Sessions = newSessions(t) })
	baseline, err := filepath.Abs("testdata/mcp-conformance.yaml")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	shim, err := filepath.Abs("testdata/globsync.mjs")
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, "node", "--import", shim, nodeModules(t)+"/@modelcontextprotocol/conformance/dist/index.js", "server",
		"--url", s.url+"/mcp", "--expected-failures", baseline)
	cmd.Dir = t.TempDir() // it writes its results where it is
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}

// TestMCPWithTheTypeScriptClient has the other official client do what a model would.
func TestMCPWithTheTypeScriptClient(t *testing.T) {
	s := newService(t, func(c *Config) { c.Sessions = newSessions(t) })
	modules := nodeModules(t)
	script, err := os.ReadFile("testdata/mcp-client.mjs")
	require.NoError(t, err)
	folder := t.TempDir() // modules are looked up from where the script is
	require.NoError(t, os.Symlink(modules, filepath.Join(folder, "node_modules")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "client.mjs"), script, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", filepath.Join(folder, "client.mjs"), s.url+"/mcp").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "all is well")
}
