package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/agent/remote"
	"notebox/client"
	"notebox/tests/e2e/service"
)

// These dialogues are scripted: what the model says is written here. The clients, the
// loop, the sandboxes and the files are real.

// dialogueTime bounds a dialogue on a machine that has much else to do.
const dialogueTime = 5 * time.Minute

const accidentsQuestion = "What factors contribute the most to accident frequency?"

// python calls the tool with a program.
func python(code string) []agenttest.Call {
	return []agenttest.Call{agenttest.Code("execute_python", code)}
}

// brokenFirst are two programs that raise and one that works.
var brokenFirst = []agenttest.Turn{
	{Text: "I try.", Calls: python("print(fibonacci(10))")},
	{Calls: python("import no_such_package\nprint(1)"), Expect: []string{"NameError"}},
	{Calls: python("a, b = 0, 1\nfor _ in range(10):\n    a, b = b, a + b\nprint('fib', a)"), Expect: []string{"ModuleNotFoundError", "Hint:"}},
	{Text: "The tenth is **{{tool:fib (\\d+)}}**."},
}

var seedDialogues = []agenttest.Dialogue{
	{Question: "5 factorial", Turns: []agenttest.Turn{
		{Calls: python("import math\nprint(math.factorial(5))")},
		{Text: "5! is **{{tool:(\\d+)}}**."},
	}},
	{Question: "sum of the numbers", Turns: []agenttest.Turn{
		{Calls: python("sum(range(1, 101))")},
		{Text: "The sum is {{tool:(\\d+)}}."},
	}},
	{Question: "random text file", Turns: []agenttest.Turn{
		{Calls: python("import random, string\ntext = ''.join(random.choices(string.ascii_letters, k=40))\nopen('/mnt/data/random.txt', 'w').write(text)\nprint(text)")},
		{Text: "Here it is: [random.txt](sandbox:/mnt/data/random.txt). Not from [here](https://elsewhere.example/x)."},
	}},
	{Question: "tenth Fibonacci", Turns: brokenFirst},
	{
		Question: "the impossible", Repeat: true,
		Turns:        []agenttest.Turn{{Calls: python("raise RuntimeError('not possible')")}},
		WithoutTools: &agenttest.Turn{Text: "I could not do it: the code raised RuntimeError each time.", Expect: []string{"No more calls are possible"}},
	},
}

// withModel starts a service whose model says the seeds' dialogues, in each protocol.
func withModel(t *testing.T, api provider.API, dialogues ...agenttest.Dialogue) *service.Service {
	t.Helper()
	model := agenttest.New(t, dialogues...)
	variables := modelVariables(model)
	if api == provider.Claude {
		variables = append(modelVariables(nil), "ANTHROPIC_API_KEY=key", "ANTHROPIC_BASE_URL="+model.Root())
	}
	return service.Options{
		Name: "agent-" + string(api), Env: variables,
		Flags: []string{"--model", "scripted", "--model-api", string(api), "--pool-size", "1"},
	}.Start(t)
}

// ran is the answer of POST /run.
type ran struct {
	Output string       `json:"output"`
	Steps  []agent.Step `json:"steps"`
	Images []struct {
		Name      string `json:"name"`
		MediaType string `json:"media_type"`
		URL       string `json:"url"`
	} `json:"images"`
	Files []struct {
		Path  string `json:"path"`
		Bytes int    `json:"bytes"`
		URL   string `json:"url"`
	} `json:"files"`
	Stopped string `json:"stopped"`
	Usage   struct {
		In  int `json:"input_tokens"`
		Out int `json:"output_tokens"`
	} `json:"usage"`
}

func askRun(t *testing.T, p *service.Service, path, question string) ran {
	t.Helper()
	body, err := json.Marshal(map[string]string{"input": question})
	require.NoError(t, err)
	status, raw := service.Post(t, p.URL+path, "application/json", body)
	require.Equal(t, http.StatusOK, status, "%s", raw)
	var r ran
	service.Decode(t, raw, &r)
	return r
}

func TestSeedDialogues(t *testing.T) {
	t.Parallel()
	for _, api := range []provider.API{provider.Chat, provider.Responses, provider.Claude} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			p := withModel(t, api, seedDialogues...)

			r := askRun(t, p, "/run", "What is 5 factorial?")
			require.Equal(t, "5! is **120**.", r.Output)
			require.Len(t, r.Steps, 1)
			require.Equal(t, "ok", r.Steps[0].Status)
			require.Positive(t, r.Usage.In)

			r = askRun(t, p, "/foo", "The sum of the numbers from 1 to 100?")
			require.Equal(t, "The sum is 5050.", r.Output)

			r = askRun(t, p, "/run", "Make a random text file and give it to me")
			require.Len(t, r.Files, 1)
			link := regexp.MustCompile(`\[random\.txt\]\((http[^)]+)\)`).FindStringSubmatch(r.Output)
			require.NotNil(t, link, r.Output)
			status, content := service.Get(t, link[1])
			require.Equal(t, http.StatusOK, status)
			require.Len(t, content, 40)
			require.Contains(t, r.Steps[0].Output, string(content))
			require.Contains(t, r.Output, "here (`https://elsewhere.example/x`)")

			r = askRun(t, p, "/run", "The tenth Fibonacci number?")
			require.Equal(t, "The tenth is **55**.", r.Output)
			require.Len(t, r.Steps, 3)
			require.Equal(t, []string{"error", "error", "ok"}, []string{r.Steps[0].Status, r.Steps[1].Status, r.Steps[2].Status})
			require.Empty(t, r.Stopped)

			r = askRun(t, p, "/run", "Do the impossible")
			require.Equal(t, "I could not do it: the code raised RuntimeError each time.", r.Output)
			require.Equal(t, "corrections", r.Stopped)
			require.Len(t, r.Steps, 1+agent.DefaultLimits().Corrections)
		})
	}
}

// TestAccidents is the fourth question: the file agent finds the data in a folder of
// the host and hands it over, the code agent computes what matters most.
func TestAccidents(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeAccidents(t, filepath.Join(folder, "traffic", "accidents.csv"))
	require.NoError(t, os.WriteFile(filepath.Join(folder, ".env"), []byte("SECRET=hidden-key"), 0o600))
	model := agenttest.New(t,
		agenttest.Dialogue{Model: "files", Question: accidentsQuestion, Turns: []agenttest.Turn{
			{Calls: []agenttest.Call{{Name: "list_files", Arguments: "{}"}, {Name: "read_file", Arguments: `{"path":".env"}`}}},
			{Calls: []agenttest.Call{{Name: "read_file", Arguments: `{"path":"traffic/accidents.csv","bytes":400}`}}, Expect: []string{"traffic/", "begin with a dot"}, Absent: []string{"hidden-key"}},
			{Calls: []agenttest.Call{{Name: "hand_over", Arguments: `{"files":["traffic/accidents.csv"],"task":"Rank the nine other columns by their importance for accidents, and draw a bar chart."}`}}, Expect: []string{"traffic_fine_amount"}},
		}},
		agenttest.Dialogue{Model: "code", Question: accidentsQuestion, Turns: []agenttest.Turn{
			{Calls: python(importance), Expect: []string{"Rank the nine other columns", "/mnt/data/traffic/accidents.csv", "time_of_day"}},
			{Text: "**{{tool:1\\. (\\w+)}}** contributes the most, then {{tool:2\\. (\\w+)}}.\n\n![importance](sandbox:/mnt/data/importance.png)"},
		}},
		agenttest.Dialogue{Model: "files", Question: "And without", Turns: []agenttest.Turn{
			{Calls: []agenttest.Call{{Name: "hand_over", Arguments: `{"files":[],"task":"Say it again."}`}}, Absent: []string{"1. ", "contributes", "/v1/files/"}},
		}},
		agenttest.Dialogue{Model: "code", Question: "And without", Turns: []agenttest.Turn{{Text: "The same.", Expect: []string{"contributes the most"}}}},
	)
	p := service.Start(t, "accidents", "--pool-size", "1")
	host, err := agent.OpenFolder(folder)
	require.NoError(t, err)
	t.Cleanup(func() { _ = host.Close() })
	mind := func(name string) agent.Mind {
		m, err := provider.Open(provider.Settings{API: provider.Chat, Model: name, BaseURL: model.URL()})
		require.NoError(t, err)
		return agent.Mind{Provider: m}
	}
	a, err := agent.New(agent.Config{Code: mind("code"), File: mind("files"), Folder: host, Executor: remote.New(client.Options{BaseURL: p.URL})})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), dialogueTime)
	defer cancel()
	talk := a.Converse()
	defer talk.Close()

	answer, err := talk.Ask(ctx, agent.Question{Text: accidentsQuestion}, nil)
	require.NoError(t, err)
	require.Regexp(t, `^\*\*traffic_density\*\* contributes the most, then rain_intensity\.`, answer.Text)
	require.Len(t, answer.Steps, 5)
	chart := regexp.MustCompile(`!\[importance\]\((http[^)]+)\)`).FindStringSubmatch(answer.Text)
	require.NotNil(t, chart, answer.Text)
	status, raw := service.Get(t, chart[1])
	require.Equal(t, http.StatusOK, status)
	picture, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	require.Greater(t, picture.Bounds().Dx(), 300)

	again, err := talk.Ask(ctx, agent.Question{Text: "And without the rain?"}, nil)
	require.NoError(t, err)
	require.Equal(t, "The same.", again.Text)
	for _, r := range model.Requests() {
		if r.Model == "files" {
			require.NotContains(t, string(r.Body), "1. traffic_density", "what a sandbox printed reached the file agent")
		} else {
			require.NotContains(t, string(r.Body), folder, "a path of the host reached the code agent")
		}
	}
}

// importance is what a model would write for the question.
const importance = `import pandas as pd
import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor

data = pd.read_csv("/mnt/data/traffic/accidents.csv")
x = pd.get_dummies(data.drop(columns="accidents"), dtype=float)
model = RandomForestRegressor(n_estimators=60, random_state=0).fit(x, data["accidents"])
names = [n.rsplit("_is_", 1)[0] for n in x.columns]
ranks = pd.Series(model.feature_importances_, index=names).groupby(level=0).sum().sort_values(ascending=False)
for i, (name, share) in enumerate(ranks.items(), 1):
    print(f"{i}. {name} {share:.3f}")
ranks[::-1].plot.barh()
plt.tight_layout()
plt.savefig("/mnt/data/importance.png", dpi=100)
`

// writeAccidents makes a table of which it is known what matters.
func writeAccidents(t *testing.T, name string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("accidents,traffic_fine_amount,traffic_density,traffic_lights,pavement_quality,urban_area,average_speed,rain_intensity,vehicle_count,time_of_day\n")
	for range 600 {
		density, rain := random.Float64()*10, random.Float64()*10
		accidents := 3*density + 1.5*rain + random.Float64()
		fmt.Fprintf(&b, "%.2f,%.2f,%.3f,%d,%.1f,%d,%.1f,%.3f,%d,%.2f\n", accidents, random.Float64()*500, density, random.IntN(10),
			random.Float64()*5, random.IntN(2), 30+random.Float64()*90, rain, random.IntN(1000), random.Float64()*24)
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o644))
}

// TestRunWithoutAModel says how to get one.
func TestRunWithoutAModel(t *testing.T) {
	t.Parallel()
	status, raw := service.Post(t, shared.URL+"/run", "application/json", []byte(`{}`))
	require.Equal(t, http.StatusBadRequest, status)
	require.JSONEq(t, `{"error":"Missing input field"}`, string(raw))
	res, err := http.Post(shared.URL+"/run", "application/json", strings.NewReader(`{"input":"x"}`))
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.Contains(t, string(raw), "OPENAI_API_KEY")
}

// TestAConversationInASession keeps variables and files between questions, over HTTP.
func TestAConversationInASession(t *testing.T) {
	t.Parallel()
	model := agenttest.New(t,
		agenttest.Dialogue{Question: "Remember", Turns: []agenttest.Turn{{Calls: python("x = open('/mnt/data/in/a b.txt').read()\nprint('read', x)"), Expect: []string{"/mnt/data/in/a b.txt (2 bytes)"}}, {Text: "Yes."}}},
		agenttest.Dialogue{Question: "What", Turns: []agenttest.Turn{{Calls: python("print('kept', x)")}, {Text: "{{tool:kept (\\d+)}}"}}},
	)
	m, err := provider.Open(provider.Settings{API: provider.Responses, Model: "m", BaseURL: model.URL()})
	require.NoError(t, err)
	a, err := agent.New(agent.Config{Code: agent.Mind{Provider: m}, Executor: remote.New(client.Options{BaseURL: shared.URL}), Sessions: true})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), dialogueTime)
	defer cancel()
	talk := a.Converse()
	live := ""
	sink := func(e agent.Event) {
		if e.Kind == agent.EventLive {
			live += e.Text
		}
	}
	given := agent.File{Name: "in/a b.txt", Size: 2, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("42")), nil }}
	_, err = talk.Ask(ctx, agent.Question{Text: "Remember it", Files: []agent.File{given}}, sink)
	require.NoError(t, err)
	answer, err := talk.Ask(ctx, agent.Question{Text: "What was it?"}, sink)
	require.NoError(t, err)
	require.Equal(t, "42", answer.Text)
	require.Equal(t, "read 42\nkept 42\n", live)
	require.NoError(t, talk.Close())
}
