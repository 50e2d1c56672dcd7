package protocols

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

// askChat runs notebox chat with what is piped in, and returns what it answers, what it says
// beside, and its exit status.
func askChat(t *testing.T, env []string, stdin string, args ...string) (answer, said string, exit int) {
	t.Helper()
	program, err := starter.Notebox()
	require.NoError(t, err)
	cmd := exec.Command(program, append([]string{"chat", "-model", "scripted"}, args...)...)
	var out, beside bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.TempDir(), append(os.Environ(), env...), strings.NewReader(stdin), &out, &beside
	if err := cmd.Run(); err != nil {
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended)
	}
	return out.String(), beside.String(), cmd.ProcessState.ExitCode()
}

// modelVariables lead a program to a model, whatever the tests' own environment says of
// models; nil: to none.
func modelVariables(model *agenttest.Server) []string {
	env := []string{"OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=", "CLOUDFLARE_API_KEY="}
	if model == nil {
		return env
	}
	return append(env, "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+model.URL())
}

// TestChat has real sandboxes, and a script for a model.
func TestChat(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "numbers.txt"), []byte("1 2 3 36\n"), 0o600))
	model := agenttest.New(t,
		agenttest.Dialogue{Question: "5 factorial", Turns: []agenttest.Turn{
			{Calls: python("import math\nprint(math.factorial(5))")},
			{Text: "5! is **{{tool:(\\d+)}}**."},
		}},
		agenttest.Dialogue{Question: "the impossible", Repeat: true,
			Turns:        []agenttest.Turn{{Calls: python("raise RuntimeError")}},
			WithoutTools: &agenttest.Turn{Text: "I could not."},
		},
		agenttest.Dialogue{Model: "files", Turns: []agenttest.Turn{{Calls: []agenttest.Call{{Name: "hand_over", Arguments: `{"files":["numbers.txt"],"task":"add"}`}}}}},
		agenttest.Dialogue{Question: "sum of the file", Turns: []agenttest.Turn{
			{Calls: python("total = sum(map(int, open('/mnt/data/numbers.txt').read().split()))")},
			{Calls: python("open('/mnt/data/total.txt', 'w').write(str(total)); print(total)")}, // in one session
			{Text: "It is {{tool:(\\d+)}}: [total.txt](/mnt/data/total.txt)."},
		}},
	)
	env := modelVariables(model)

	answer, said, exit := askChat(t, env, "What is 5 factorial?\n", "-url", shared.URL)
	require.Zero(t, exit, said)
	require.Equal(t, "5! is **120**.\n", answer)

	answer, said, exit = askChat(t, env, "", "-url", shared.URL, "What is 5 factorial?")
	require.Zero(t, exit, said)
	require.Equal(t, "5! is **120**.\n", answer)

	answer, said, exit = askChat(t, env, "", "-url", shared.URL, "Do the impossible")
	require.Equal(t, 3, exit, said)
	require.Equal(t, "I could not.\n", answer)

	answer, said, exit = askChat(t, env, "", "-url", shared.URL, "-dir", folder, "-file-model", "files", "What is the sum of the file?")
	require.Zero(t, exit, said)
	link := strings.TrimSuffix(strings.TrimPrefix(answer, "It is 42: [total.txt]("), ").\n")
	status, content := service.Get(t, link)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "42", string(content))
}

func TestChatSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(keys.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(page.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, said, exit := askChat(t, modelVariables(nil), "hello", "-url", gone.URL)
	require.Equal(t, 1, exit)
	require.Contains(t, said, "set OPENAI_API_KEY")
	env := append(modelVariables(nil), "OPENAI_API_KEY=key")
	for _, c := range []struct {
		desc  string
		flags []string
		want  string
	}{
		{"nothing there", []string{"-url", gone.URL}, "no notebox answers at " + gone.URL},
		{"how to start one", []string{"-url", gone.URL}, "notebox serve starts one"},
		{"a key is needed", []string{"-url", keys.URL}, "NOTEBOX_API_KEY"},
		{"no notebox", []string{"-url", page.URL}, "no notebox answers"},
		{"no address", []string{"-url", "localhost"}, "-url"},
		{"no folder", []string{"-dir", "/no/such/folder"}, "-dir"},
		{"no such pictures", []string{"-url", shared.URL, "-images", "holograms"}, "-images"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, said, exit := askChat(t, env, "hello", c.flags...)
			require.Equal(t, 1, exit)
			require.Contains(t, said, c.want)
		})
	}
	_, said, exit = askChat(t, env, " \n", "-url", shared.URL)
	require.Equal(t, 1, exit)
	require.Contains(t, said, "the question is empty")
}
