package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
)

// exampleTime bounds one example: three processes on a busy machine, and a run.
const exampleTime = 5 * time.Minute

// clientsFolder is where scripts/clients.sh puts the official clients.
func clientsFolder(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../.clients/" + name)
	require.NoError(t, err)
	require.DirExists(t, path, "make clients installs them")
	return path
}

// TestFunctionToolExamples runs the files that people copy, as they are: the model is
// a script, the clients are the official ones, and the code runs in a sandbox. The
// model forgets to write JSON, which a caller need not notice.
func TestFunctionToolExamples(t *testing.T) {
	for _, c := range []struct {
		desc    string
		command func(t *testing.T) []string
		call    agenttest.Call
	}{
		{"functiontool-go", func(t *testing.T) []string {
			program := filepath.Join(t.TempDir(), "functiontool")
			out, err := exec.Command("go", "build", "-o", program, "../../examples/functiontool-go").CombinedOutput()
			require.NoError(t, err, "%s", out)
			return []string{program}
		}, agenttest.Call{Name: "execute_python", Arguments: "```python\nprint(sum(range(1, 101)))\n```"}},
		{"functiontool-python", func(t *testing.T) []string {
			return []string{clientsFolder(t, "python") + "/bin/python", "../../examples/functiontool-python/functiontool.py"}
		}, agenttest.Call{Name: "execute_python", Arguments: "print(sum(range(1, 101)))"}},
		{"functiontool-typescript", func(t *testing.T) []string { return compiled(t, "functiontool-typescript") },
			agenttest.Call{Name: "python", Arguments: `{"input": "print(sum(range(1, 101)))"`}},
		{"functiontool-vercel-ai", func(t *testing.T) []string { return compiled(t, "functiontool-vercel-ai") },
			agenttest.Code("execute_python", "print(sum(range(1, 101)))")}, // the SDK itself wants JSON
	} {
		t.Run(c.desc, func(t *testing.T) {
			const question = "What is the sum of the numbers from 1 to 100?"
			model := agenttest.New(t, agenttest.Dialogue{Question: question, Turns: []agenttest.Turn{
				{Calls: []agenttest.Call{c.call}},
				{Text: "It is {{tool}}.", Expect: []string{"5050"}},
			}})
			command := c.command(t)
			ctx, cancel := context.WithTimeout(context.Background(), exampleTime)
			defer cancel()
			cmd := exec.CommandContext(ctx, command[0], append(command[1:], question)...)
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+model.URL(), "OPENAI_API_KEY=key", "OPENAI_MODEL=script",
				"NOTEBOX_URL="+suite.program.url(), "NOTEBOX_API_KEY=")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, "It is 5050.\n", string(out))
			require.Empty(t, model.Failures())
		})
	}
}

// compiled checks the types of an example in TypeScript, and returns how to run it.
func compiled(t *testing.T, name string) []string {
	t.Helper()
	node := clientsFolder(t, "node")
	folder := t.TempDir() // modules are looked up from where the file is
	require.NoError(t, os.Symlink(node+"/node_modules", folder+"/node_modules"))
	source, err := os.ReadFile("../../examples/" + name + "/functiontool.ts")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(folder+"/functiontool.ts", source, 0o600))
	require.NoError(t, os.WriteFile(folder+"/package.json", []byte(`{"type": "module"}`), 0o600))
	cmd := exec.Command("node", "node_modules/typescript/bin/tsc", "--strict", "--skipLibCheck", "--target", "es2022",
		"--module", "nodenext", "--types", "node", "functiontool.ts")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return []string{"node", folder + "/functiontool.js"}
}
