package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/agent/console"
)

// askChat runs notebox chat with what is piped in, and returns what it answers.
func askChat(t *testing.T, stdin, question string, flags ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "in"), []byte(stdin), 0o600))
	in, err := os.Open(filepath.Join(folder, "in"))
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(filepath.Join(folder, "out"))
	require.NoError(t, err)
	defer out.Close()
	var c chat
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	c.register(set)
	require.NoError(t, set.Parse(append([]string{"-model", "scripted"}, flags...)))
	failed := c.run(context.Background(), question, in, out)
	raw, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	return string(raw), failed
}

// noModels clears what the tests' own environment may say of models.
func noModels(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "CLOUDFLARE_API_KEY"} {
		t.Setenv(name, "")
	}
}

// TestChat has real sandboxes, and a script for a model.
func TestChat(t *testing.T) {
	noModels(t)
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
	t.Setenv("OPENAI_API_KEY", "key")
	t.Setenv("OPENAI_BASE_URL", model.URL())
	at := []string{"-url", suite.program.url()}

	answer, err := askChat(t, "What is 5 factorial?\n", "", at...)
	require.NoError(t, err)
	require.Equal(t, "5! is **120**.\n", answer)

	answer, err = askChat(t, "", "What is 5 factorial?", at...)
	require.NoError(t, err)
	require.Equal(t, "5! is **120**.\n", answer)

	answer, err = askChat(t, "", "Do the impossible", at...)
	var exit exitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitStopped, exit.status)
	require.Equal(t, "I could not.\n", answer)

	answer, err = askChat(t, "", "What is the sum of the file?", append(at, "-dir", folder, "-file-model", "files")...)
	require.NoError(t, err)
	link := strings.TrimSuffix(strings.TrimPrefix(answer, "It is 42: [total.txt]("), ").\n")
	status, content := get(t, link)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "42", string(content))
}

func TestChatSaysWhatIsMissing(t *testing.T) {
	noModels(t)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(keys.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(page.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := askChat(t, "hello", "", "-url", gone.URL)
	require.ErrorContains(t, err, "set OPENAI_API_KEY")
	t.Setenv("OPENAI_API_KEY", "key")
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
		{"no such pictures", []string{"-url", suite.program.url(), "-images", "holograms"}, "-images"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := askChat(t, "hello", "", c.flags...)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err = askChat(t, " \n", "", "-url", suite.program.url())
	require.ErrorContains(t, err, "the question is empty")
}

func TestExitStatuses(t *testing.T) {
	require.NoError(t, exitOf(nil))
	var exit exitError
	require.ErrorAs(t, exitOf(console.ErrInterrupted), &exit)
	require.Equal(t, exitInterrupted, exit.status)
	require.EqualError(t, exitOf(errors.New("no\x1b[2J")), "no")
}
