package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"notebox/runner/runnertest"
	"notebox/server/dify"
)

// difyWorkflow is what the test reads of a workflow's DSL.
type difyWorkflow struct {
	Kind, Version string
	Workflow      struct {
		EnvironmentVariables []struct{ Name string } `yaml:"environment_variables"`
		Graph                struct {
			Edges []struct{ Source, Target string }
			Nodes []struct {
				ID   string
				Data struct {
					Type, Method, URL, Headers string
					Body                       struct {
						Type string
						Data []struct{ Type, Value string }
					}
					Timeout   struct{ Read int }
					Code      string
					Outputs   any
					Variables []struct {
						Variable      string
						ValueSelector []string `yaml:"value_selector"`
					}
				}
			}
		}
	}
}

// template is a variable in a node's text.
var template = regexp.MustCompile(`\{\{#([a-z_A-Z.]+)#\}\}`)

// fill puts values for the variables of a text, each of which must be known.
func fill(t *testing.T, text string, values map[string]string) string {
	t.Helper()
	return template.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := values[template.FindStringSubmatch(found)[1]]
		require.True(t, ok, "%s is not known here", found)
		return value
	})
}

// TestDifyExampleWorkflow acts examples/dify/workflow.yml: its HTTP requests are sent in the
// order of its edges, with the variables that the nodes before have, and are as described.
func TestDifyExampleWorkflow(t *testing.T) {
	raw, err := os.ReadFile("../examples/dify/workflow.yml")
	require.NoError(t, err)
	var w difyWorkflow
	require.NoError(t, yaml.Unmarshal(raw, &w))
	require.Equal(t, "app", w.Kind)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, w.Version)

	source := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a\n1\n") })
	s := newDify(t)
	doc := s.difyDocument()
	calls := map[string]dify.Call{}
	for _, call := range dify.Calls() {
		calls[call.Path()] = call
	}
	values := map[string]string{
		"env.NOTEBOX_URL": s.url, "env.NOTEBOX_KEY": "none", "sys.workflow_run_id": "run-1",
		"start.file.url": "http://127.0.0.1:" + source.port() + "/file-preview?sign=x",
	}
	for _, v := range w.Workflow.EnvironmentVariables {
		require.Contains(t, values, "env."+v.Name)
	}
	next := map[string]string{}
	for _, e := range w.Workflow.Graph.Edges {
		next[e.Source] = e.Target
	}
	ran := map[string]map[string]any{}
	at, seen := "start", 1
	for ; at != "end"; at, seen = next[at], seen+1 {
		for _, n := range w.Workflow.Graph.Nodes {
			if n.ID != at {
				continue
			}
			for _, v := range n.Data.Variables {
				if len(v.ValueSelector) > 0 {
					require.Contains(t, ran, v.ValueSelector[0], "%s reads what was not run before it", at)
					require.Contains(t, n.Data.Code, v.Variable+": str")
				}
			}
			if n.Data.Type != "http-request" {
				continue
			}
			require.Equal(t, "post", n.Data.Method)
			require.Equal(t, "json", n.Data.Body.Type)
			require.Len(t, n.Data.Body.Data, 1)
			require.Greater(t, n.Data.Timeout.Read, int(dify.RunTime.Seconds()))
			body := fill(t, n.Data.Body.Data[0].Value, values)
			var headers []string
			for line := range strings.Lines(fill(t, n.Data.Headers, values)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
				headers = append(headers, name, value)
			}
			call, ok := calls[strings.TrimPrefix(fill(t, n.Data.URL, values), s.url)]
			require.True(t, ok, n.Data.URL)
			var fields map[string]string
			require.NoError(t, json.Unmarshal([]byte(body), &fields), body)
			if code := fields["code"]; code != "" {
				s.sessions.On(code, func(k *runnertest.Kernel) { k.Print(at + "\n") })
			}
			var answer map[string]any
			require.NoError(t, json.Unmarshal(s.described(doc, call, body, http.StatusOK, headers...).body, &answer))
			ran[at] = answer
			if at == "create" { // which the node after it reads
				values["created.sandbox_id"] = answer["sandbox_id"].(string)
			}
		}
	}
	require.Len(t, w.Workflow.Graph.Nodes, seen, "all nodes are on the way")
	require.Equal(t, "load\n", ran["load"]["output"])
	require.Equal(t, "plot\n", ran["plot"]["output"])
	require.Equal(t, "stopped", ran["stop"]["status"])
}
