package languages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/notebook"
	"notebox/runner"
	"notebox/tests/e2e/service"
)

// corpus holds one notebook a file. NN-name.ipynb is a notebook as it is; its
// metadata.conformance says what it is about and which rules of
// conformance_normalise_test.go it needs, beyond those for all. NN-name.py has
// the cells of one after lines of "# %%"; the comment before the first says the
// same, with the rules after "# normalise:".
const corpus = "testdata/conformance"

const (
	// conformanceTimeout of one notebook, by the service. On an idle machine they take 2 to
	// 10 seconds.
	conformanceTimeout = 2 * time.Minute
	// jupyterTimeout of all notebooks, by Jupyter, which takes a minute on an idle machine.
	jupyterTimeout = 30 * time.Minute
)

// TestConformance runs the corpus twice: by Jupyter's own command line, and by the service
// in a sandbox that was warm. The executed notebooks must be equal.
func TestConformance(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(corpus + "/[0-9]*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(names), 30)
	samples := map[string]sample{}
	for _, name := range names {
		samples[name] = readSample(t, name)
	}
	requireAlike(t, warmService(t, "conformance"), service.SandboxImage(t), samples, nil)
}

// requireAlike runs notebooks, by their names, by Jupyter and, one after another, by a
// service, and compares what comes of them. env are variables of Jupyter's kernels.
func requireAlike(t *testing.T, p *service.Service, image string, samples map[string]sample, env map[string]string) {
	t.Helper()
	type result struct {
		executed map[string]string
		err      error
	}
	var want result
	jupyter := make(chan result, 1)
	go func() {
		executed, err := executeByJupyter(t.Context(), image, samples, env)
		jupyter <- result{executed, err}
	}()
	for name, s := range samples {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := executeByService(t, p, s.document)
			t.Parallel() // waits until the service is through with all, and Jupyter too
			require.NoError(t, want.err)
			require.Empty(t, difference("", normalised(t, s, []byte(want.executed[name])), normalised(t, s, got)),
				"not equal: first what Jupyter made, then what notebox did")
		})
	}
	want = <-jupyter
}

// sample is a notebook of the corpus.
type sample struct {
	document []byte   // nbformat 4
	rules    []string // names of rules
}

var (
	cellLine  = regexp.MustCompile(`(?m)^# %%\n`)
	ruleNames = regexp.MustCompile(`(?m)^# normalise: (.*)$`)
)

func readSample(t *testing.T, name string) sample {
	t.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	if filepath.Ext(name) == ".ipynb" {
		var doc struct {
			Metadata struct {
				Conformance struct {
					About     string
					Normalise []string
				}
			}
		}
		require.NoError(t, json.Unmarshal(raw, &doc))
		require.NotEmpty(t, doc.Metadata.Conformance.About)
		return sample{raw, doc.Metadata.Conformance.Normalise}
	}
	var s sample
	cells := cellLine.Split(string(raw), -1)
	require.True(t, strings.HasPrefix(cells[0], "# "), "says what it is about")
	if list := ruleNames.FindStringSubmatch(cells[0]); list != nil {
		s.rules = strings.Split(list[1], ", ")
	}
	cells = cells[1:]
	for i := range cells {
		cells[i] = strings.TrimSuffix(cells[i], "\n")
		cells[i] = strings.TrimSuffix(cells[i], "\n") // the empty line before the next cell
	}
	s.document, err = notebook.New(cells, notebook.Kernel{Name: "python3", DisplayName: "Python 3 (ipykernel)", Language: "python"})
	require.NoError(t, err)
	return s
}

func executeByService(t *testing.T, p *service.Service, document []byte) []byte {
	t.Helper()
	r := p.ExecuteWarm(t, map[string]any{
		"notebook":      json.RawMessage(document),
		"stop_on_error": false,
		"timeout":       conformanceTimeout.Seconds(),
	})
	require.Contains(t, []string{"ok", "error"}, r.Status, "%s", r.Text)
	status, raw := service.Get(t, r.Notebook.URL)
	require.Equal(t, http.StatusOK, status)
	return raw
}

// jupyterScript gives the command line what the harness gives a kernel: no variables but
// kernelEnv, which docker sets. The empty processes are there so that no process id agrees
// by chance.
const jupyterScript = `for _ in $(seq 50); do (:); done
exec nice -n 10 env --unset=HOSTNAME --unset=PWD python3 -c "$0"`

// kernelEnv is the environment of a kernel in a sandbox, besides PATH.
var kernelEnv = []string{
	"HOME=/tmp/home",
	"USER=sandbox",
	"LOGNAME=sandbox",
	"SHELL=/bin/bash",
	"LANG=C.UTF-8",
	"DISPLAY=:99",
	"PYTHONDONTWRITEBYTECODE=1",
	"OPENBLAS_THREAD_TIMEOUT=4",
}

// executeByJupyter runs notebooks as people do with nbconvert, see testdata/nbconvert.py, in
// a container that is as narrow as a sandbox.
func executeByJupyter(ctx context.Context, image string, samples map[string]sample, env map[string]string) (executed map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, jupyterTimeout)
	defer cancel()
	script, err := os.ReadFile("testdata/nbconvert.py")
	if err != nil {
		return nil, err
	}
	documents := map[string]string{}
	for name, s := range samples {
		documents[name] = string(s.document)
	}
	stdin, err := json.Marshal(documents)
	if err != nil {
		return nil, err
	}
	l := runner.DefaultLimits()
	name := fmt.Sprintf("notebox-conformance-%d-%d", os.Getpid(), time.Now().UnixNano())
	args := []string{
		"run", "--rm", "--interactive", "--init", "--name", name,
		// So that the check for what these tests leave behind sees it too.
		"--label", "notebox.service=" + service.ID("jupyter"),
		"--network", "none", "--hostname", "sandbox", "--read-only",
		"--user", "64000:64000", "--workdir", "/mnt/data",
		"--tmpfs", fmt.Sprintf("/mnt/data:rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,mode=0755,uid=64000,gid=64000", l.DataSize, l.Inodes),
		"--tmpfs", fmt.Sprintf("/tmp:rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,mode=1777", l.TmpSize, l.Inodes),
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "seccomp=../../../runner/posture/seccomp.json",
		"--memory", fmt.Sprint(l.Memory), "--memory-swap", fmt.Sprint(l.Memory), "--cpus", fmt.Sprint(l.CPUs), "--pids-limit", fmt.Sprint(l.Pids),
		"--ulimit", "core=1", "--ulimit", "nofile=8192",
	}
	for _, v := range kernelEnv {
		args = append(args, "--env", v)
	}
	for name, value := range env {
		args = append(args, "--env", name+"="+value)
	}
	cmd := exec.CommandContext(ctx, "docker", append(args, "--entrypoint", "/bin/sh", image, "-euc", jupyterScript, string(script))...)
	cmd.Cancel = func() error {
		_ = exec.Command("docker", "kill", name).Run() // it may have ended by itself
		return cmd.Process.Kill()
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("jupyter nbconvert: %w\n%s", err, stderr.Bytes())
	}
	return executed, json.Unmarshal(stdout.Bytes(), &executed)
}

// TestConformanceComparison shows that the comparison sees what differs, and
// that a rule hides what it is for and nothing else.
func TestConformanceComparison(t *testing.T) {
	outputs := func(list ...string) string {
		return `{"cell_type": "code", "metadata": {"execution": {"busy": "10:00", "idle": "10:01"}}, "source": "x", "outputs": [` + strings.Join(list, ",") + `]}`
	}
	stream := func(name, text string) string {
		return fmt.Sprintf(`{"output_type": "stream", "name": %q, "text": %s}`, name, text)
	}
	failure := func(frames string) string { return `{"output_type": "error", "traceback": [` + frames + `]}` }
	const shown = `{"output_type": "execute_result", "data": {"text/plain": ["<f at 0x7f0000001230>"]}}`
	a, b := stream("stdout", `["a\n", "b\n"]`), stream("stderr", `"c\n"`)
	for _, c := range []struct {
		desc, rule string
		one, other string // a cell
		differ     bool
	}{
		{desc: "the same", one: outputs(a), other: outputs(a)},
		{desc: "a text", one: outputs(a), other: outputs(stream("stdout", `["a\n", "B\n"]`)), differ: true},
		{desc: "a text that is cut off", one: outputs(a), other: outputs(stream("stdout", `["a\n"]`)), differ: true},
		{desc: "the name of a stream", one: outputs(a), other: outputs(stream("stderr", `["a\n", "b\n"]`)), differ: true},
		{desc: "an output less", one: outputs(a, shown), other: outputs(a), differ: true},
		{desc: "an output more", one: outputs(a), other: outputs(a, shown), differ: true},
		{desc: "the order of outputs", one: outputs(a, shown), other: outputs(shown, a), differ: true},
		{desc: "a type", one: outputs(shown), other: outputs(strings.Replace(shown, "execute_result", "display_data", 1)), differ: true},
		{desc: "a media type", one: outputs(shown), other: outputs(strings.Replace(shown, "plain", "html", 1)), differ: true},
		{desc: "a field more", one: outputs(shown), other: outputs(`{"metadata": {},` + shown[1:]), differ: true},
		{desc: "a field that is null", one: outputs(shown), other: outputs(`{"metadata": null,` + shown[1:]), differ: true},
		{desc: "a number of another type", one: `{"metadata": {"n": 1}}`, other: `{"metadata": {"n": 1.0}}`, differ: true},
		{desc: "a source", one: outputs(), other: strings.Replace(outputs(), `"x"`, `"y"`, 1), differ: true},
		{desc: "times", one: outputs(), other: strings.Replace(outputs(), "10:01", "10:02", 1)},
		{desc: "a time that is missing", one: outputs(), other: strings.Replace(outputs(), `, "idle": "10:01"`, "", 1), differ: true},
		{desc: "a stream in pieces", one: outputs(a), other: outputs(stream("stdout", `"a"`), stream("stdout", `"\nb\n"`))},
		{desc: "pieces around an output", one: outputs(a, shown), other: outputs(stream("stdout", `"a\n"`), shown, stream("stdout", `"b\n"`)), differ: true},

		{desc: "streams the other way round", one: outputs(a, b), other: outputs(b, a), differ: true},
		{desc: "streams the other way round", rule: "stream-order", one: outputs(a, b), other: outputs(b, a)},
		{desc: "streams cut by each other", rule: "stream-order", one: outputs(a, b), other: outputs(stream("stdout", `"a\n"`), b, stream("stdout", `"b\n"`))},
		{desc: "the order within one stream", rule: "stream-order", one: outputs(a, b), other: outputs(b, stream("stdout", `"b\na\n"`)), differ: true},
		{desc: "streams around an output", rule: "stream-order", one: outputs(a, shown, b), other: outputs(b, shown, a), differ: true},

		{desc: "an address", one: outputs(shown), other: outputs(strings.Replace(shown, "123", "456", 1)), differ: true},
		{desc: "an address", rule: "addresses", one: outputs(shown), other: outputs(strings.Replace(shown, "123", "456", 1))},
		{desc: "what is at an address", rule: "addresses", one: outputs(shown), other: outputs(strings.Replace(shown, "<f", "<g", 1)), differ: true},
		{desc: "an address in a source", rule: "addresses", one: `{"metadata": {}, "source": "0x12345678"}`, other: `{"metadata": {}, "source": "0x12345679"}`, differ: true},

		{desc: "a frame of the harness", rule: "write-frame", one: outputs(failure(`"a", "b"`)), other: outputs(failure(`"a", "File /opt/notebox/harness/kernel/application.py:5, in OutStream.write", "b"`))},
		{desc: "a frame of others", rule: "write-frame", one: outputs(failure(`"a", "b"`)), other: outputs(failure(`"a", "File application.py:5, in OutStream.write", "b"`)), differ: true},
	} {
		t.Run(strings.TrimSpace(c.desc+" "+c.rule), func(t *testing.T) {
			execution := func(cell string) object {
				s := sample{document: []byte(`{"cells": [` + cell + `]}`)}
				if c.rule != "" {
					s.rules = []string{c.rule}
				}
				return normalised(t, s, s.document)
			}
			d := difference("", execution(c.one), execution(c.other))
			require.Equal(t, c.differ, d != "", d)
		})
	}
}

// TestConformanceRules: a rule that no notebook needs would only hide something.
func TestConformanceRules(t *testing.T) {
	names, err := filepath.Glob(corpus + "/[0-9]*")
	require.NoError(t, err)
	used := map[string]bool{}
	others, err := filepath.Glob(strings.Replace(corpusOfEnvironment, "%", "*", 1) + "/*.txt")
	require.NoError(t, err)
	for _, name := range others {
		for _, r := range readMarked(t, name, environments.Environment{}).rules {
			used[r] = true
		}
	}
	for _, name := range names {
		for _, r := range readSample(t, name).rules {
			used[r] = true
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(rules)), slices.Collect(maps.Keys(used)))
}
