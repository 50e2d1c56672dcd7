package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
	"notebox/runner"
)

// corpus holds one notebook a file. NN-name.ipynb is a notebook as it is; its
// metadata.conformance says what it is about and which rules of
// conformance_normalise_test.go it needs, beyond those for all. NN-name.py has
// the cells of one after lines of "# %%"; the comment before the first says the
// same, with the rules after "# normalise:".
const corpus = "testdata/conformance"

// conformanceTimeout of one notebook, by either way. On an idle machine they take 2 to
// 10 seconds.
const conformanceTimeout = 2 * time.Minute

// TestConformance runs the corpus twice: by Jupyter's own command line in a fresh
// container, and by the service. The executed notebooks must be equal.
func TestConformance(t *testing.T) {
	names, err := filepath.Glob(corpus + "/[0-9]*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(names), 30)
	image := sandboxImage(t)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			sample := readSample(t, name)
			type result struct {
				raw []byte
				err error
			}
			jupyter := make(chan result, 1)
			go func() {
				raw, err := executeByJupyter(t.Context(), image, sample.document)
				jupyter <- result{raw, err}
			}()
			got := executeByService(t, sample.document)
			want := <-jupyter
			require.NoError(t, want.err)
			for i := range sample.rules { // DEVEL
				less := sample
				less.rules = append(append([]string{}, sample.rules[:i]...), sample.rules[i+1:]...)
				if difference("", normalised(t, less, want.raw), normalised(t, less, got)) == "" {
					t.Log("NOT NEEDED", sample.rules[i])
				}
			}
			require.Empty(t, difference("", normalised(t, sample, want.raw), normalised(t, sample, got)),
				"not equal: first what Jupyter made, then what notebox did")
		})
	}
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

func executeByService(t *testing.T, document []byte) []byte {
	t.Helper()
	r := execute(t, map[string]any{
		"notebook":      json.RawMessage(document),
		"stop_on_error": false,
		"timeout":       conformanceTimeout.Seconds(),
	})
	require.Contains(t, []string{"ok", "error"}, r.Status, "%s", r.Text)
	status, raw := get(t, r.Notebook.URL)
	require.Equal(t, http.StatusOK, status)
	return raw
}

// jupyterScript gives the command line what the harness gives a kernel: a home
// of a new user, and no variables but kernelEnv, which docker sets. Not with
// --stdout, where the output of processes that a notebook starts comes as well.
const jupyterScript = `cp -r /etc/skel "$HOME"
env --unset=HOSTNAME --unset=PWD jupyter nbconvert --to notebook --execute --allow-errors --stdin --output-dir /tmp/executed --output notebook >&2
cat /tmp/executed/notebook.ipynb`

// kernelEnv is the environment of a kernel in a sandbox, besides PATH.
var kernelEnv = []string{
	"HOME=/tmp/home",
	"USER=sandbox",
	"LOGNAME=sandbox",
	"SHELL=/bin/bash",
	"LANG=C.UTF-8",
	"DISPLAY=:99",
	"PYTHONDONTWRITEBYTECODE=1",
}

// executeByJupyter runs a notebook as people do with nbconvert, in a container
// of its own that is as narrow as a sandbox.
func executeByJupyter(ctx context.Context, image string, document []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, conformanceTimeout)
	defer cancel()
	l := runner.DefaultLimits()
	name := fmt.Sprintf("notebox-conformance-%d-%d", os.Getpid(), time.Now().UnixNano())
	args := []string{
		"run", "--rm", "--interactive", "--init", "--name", name,
		// So that the check for what these tests leave behind sees it too.
		"--label", "notebox.service=" + serviceID,
		"--network", "none", "--hostname", "sandbox", "--read-only",
		"--user", "64000:64000", "--workdir", "/mnt/data",
		"--tmpfs", fmt.Sprintf("/mnt/data:rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,mode=0755,uid=64000,gid=64000", l.DataSize, l.Inodes),
		"--tmpfs", fmt.Sprintf("/tmp:rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,mode=1777", l.TmpSize, l.Inodes),
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "seccomp=../../runner/docker/seccomp.json",
		"--memory", fmt.Sprint(l.Memory), "--memory-swap", fmt.Sprint(l.Memory), "--cpus", fmt.Sprint(l.CPUs), "--pids-limit", fmt.Sprint(l.Pids),
		"--ulimit", "core=0", "--ulimit", "nofile=8192",
	}
	for _, v := range kernelEnv {
		args = append(args, "--env", v)
	}
	cmd := exec.CommandContext(ctx, "docker", append(args, "--entrypoint", "/bin/sh", image, "-euc", jupyterScript)...)
	cmd.Cancel = func() error {
		_ = exec.Command("docker", "kill", name).Run() // it may have ended by itself
		return cmd.Process.Kill()
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(document), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("jupyter nbconvert: %w\n%s", err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
