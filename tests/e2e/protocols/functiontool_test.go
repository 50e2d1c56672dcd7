package protocols

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/tests/e2e/service"
)

// exampleTime bounds one example: what it installs, and its runs, on a busy machine.
const exampleTime = 8 * time.Minute

// clientsFolder is where scripts/clients.sh puts the official clients.
func clientsFolder(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../../.clients/" + name)
	require.NoError(t, err)
	require.DirExists(t, path, "make clients installs them")
	return path
}

// words are the commands that the head of a file says to run: the indented lines of its first
// comment. What a reader fills in is filled in.
func words(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(source), "\nimport ")
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^(?://\t|    )(.+)$`).FindAllStringSubmatch(head, -1) {
		lines = append(lines, m[1])
	}
	require.NotEmpty(t, lines, "%s says nothing to run", file)
	return strings.NewReplacer("…", "key", "What is the sum of the first 100 primes?", exampleQuestion,
		"-url http://127.0.0.1:8080", "-url "+shared.URL).Replace(strings.Join(lines, "\n"))
}

const exampleQuestion = "What is the sum of the numbers from 1 to 100?"

// say runs the words of an example's file as somebody would who has nothing but it: in a folder
// with that example alone, or, for a program in Go, where "go run" finds its module. It returns
// what the last command printed.
func say(t *testing.T, file, folder string, env ...string) string {
	t.Helper()
	lines := strings.Split(words(t, file), "\n")
	if folder == "" {
		folder = t.TempDir()
		require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(file))))
	}
	tools := t.TempDir()
	if strings.HasPrefix(lines[0], "pip ") { // into an environment of its own
		made, err := exec.Command("python3", "-m", "venv", tools).CombinedOutput()
		require.NoError(t, err, "%s", made)
	}
	ctx, cancel := context.WithTimeout(context.Background(), exampleTime)
	defer cancel()
	var out []byte
	for _, line := range lines {
		cmd := exec.CommandContext(ctx, "bash", "-euc", line)
		cmd.Dir = folder
		cmd.Env = append(append(os.Environ(), "PATH="+tools+"/bin:"+os.Getenv("PATH"), "NOTEBOX_API_KEY=", "NO_COLOR=1"), env...)
		var all bytes.Buffer
		cmd.Stderr = &all
		said, err := cmd.Output()
		out = said
		require.NoError(t, err, "%s\n%s%s", line, all.String(), out)
		require.NotRegexp(t, `(?i)warning(\(s\)|:| parsing)`, regexp.MustCompile(`(?m)^npm warn.*$`).ReplaceAllString(all.String()+string(out), ""), line)
	}
	return string(out)
}

// TestFunctionToolExamples runs the files that people copy, as they say: the model is a
// script, the clients are the official ones, and the code runs in a sandbox. The model
// forgets to write JSON, which a caller need not notice.
func TestFunctionToolExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file   string
		folder string // where it is run; "": in an empty one
		call   agenttest.Call
	}{
		{"functiontool-go/main.go", "../../../examples/functiontool-go", agenttest.Call{Name: "execute_python", Arguments: "```python\nprint(sum(range(1, 101)))\n```"}},
		{"functiontool-python/functiontool.py", "", agenttest.Call{Name: "execute_python", Arguments: "print(sum(range(1, 101)))"}},
		{"functiontool-typescript/functiontool.ts", "", agenttest.Call{Name: "python", Arguments: `{"input": "print(sum(range(1, 101)))"`}},
		{"functiontool-vercel-ai/functiontool.ts", "", agenttest.Code("execute_python", "print(sum(range(1, 101)))")}, // the SDK itself wants JSON
	} {
		t.Run(filepath.Dir(c.file), func(t *testing.T) {
			t.Parallel()
			model := agenttest.New(t, agenttest.Dialogue{Question: exampleQuestion, Turns: []agenttest.Turn{
				{Calls: []agenttest.Call{c.call}},
				{Text: "It is {{tool}}.", Expect: []string{"5050"}},
			}})
			if strings.HasSuffix(c.file, ".ts") {
				checkTypes(t, "../../../examples/"+c.file)
			}
			out := say(t, "../../../examples/"+c.file, c.folder, "OPENAI_BASE_URL="+model.URL(), "OPENAI_MODEL=script", "NOTEBOX_URL="+shared.URL)
			require.Equal(t, "It is 5050.\n", out)
			require.Empty(t, model.Failures())
		})
	}
}

// TestOpenAPIExamples: the clients that well-known generators make of both documents, with no
// warning, have strict types that fit, and run a plot.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"openapi-python/plot.py", "openapi-typescript/plot.ts", "openapi-go/plot.go"} {
		t.Run(filepath.Dir(file), func(t *testing.T) {
			t.Parallel()
			out := say(t, "../../../examples/"+file, "", "NOTEBOX_URL="+shared.URL)
			require.Regexp(t, `^native: image_0\.png, \d{3} x \d{3}\nnotebook: 42\ndify: image_0\.png\n$`, out)
		})
	}
}

// checkTypes checks those of an example in TypeScript, with the clients that are installed.
func checkTypes(t *testing.T, file string) {
	t.Helper()
	folder := t.TempDir() // modules are looked up from where the file is
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(file))))
	require.NoError(t, os.Symlink(clientsFolder(t, "node")+"/node_modules", folder+"/node_modules"))
	cmd := exec.Command("node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022",
		"--module", "preserve", "--types", "node", filepath.Base(file))
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestExamples runs what people copy.
func TestExamples(t *testing.T) {
	t.Parallel()
	out := say(t, "../../../examples/analysis/main.go", "../../..")
	require.Contains(t, out, "status: ok")
	require.Contains(t, out, "rides-by-month.xlsx")
	require.Contains(t, out, "fetched")

	cells, err := os.ReadFile("../../../examples/requests/cells.json")
	require.NoError(t, err)
	status, raw := service.Post(t, shared.URL+"/v1/execute", "application/json", cells)
	require.Equal(t, http.StatusOK, status, "%s", raw)
	var r service.Reply
	service.Decode(t, raw, &r)
	require.Equal(t, "error", r.Status)
	require.Contains(t, r.Text, "runs too")
}
