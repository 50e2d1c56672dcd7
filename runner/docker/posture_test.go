package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// TestPosture holds what a sandbox is, as the daemon reports it, against the
// golden file.
func TestPosture(t *testing.T) {
	e := newEngine(t, "test-posture-"+strings.ToLower(rand.Text()))
	env := environment(t)
	s, err := e.Start(t.Context(), env, runner.DefaultLimits())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Kill(context.Background())) }()
	have, err := e.api.ContainerInspect(t.Context(), s.ID())
	require.NoError(t, err)

	require.Contains(t, have.Config.Labels[LabelService], "test-posture-")
	require.Equal(t, "notebox-"+have.Config.Labels[labelSandbox], s.ID())
	user := have.Config.Labels[labelUser]
	data := have.HostConfig.Tmpfs["/mnt/data"]
	require.Equal(t, 2, strings.Count(data, user), "its uid and its gid")
	have.HostConfig.Tmpfs["/mnt/data"] = strings.ReplaceAll(data, user, "USER")
	have.Config.Labels = map[string]string{labelEnvironment: have.Config.Labels[labelEnvironment]}
	have.Config.Image = "the environment's"
	for i, option := range have.HostConfig.SecurityOpt {
		if strings.HasPrefix(option, "seccomp=") {
			require.JSONEq(t, seccompProfile, strings.TrimPrefix(option, "seccomp="))
			have.HostConfig.SecurityOpt[i] = "seccomp=seccomp.json"
		}
	}
	// Of cgroup v1 alone; there is no swap to be had either way.
	have.HostConfig.MemorySwappiness = nil
	require.False(t, have.HostConfig.OomKillDisable != nil && *have.HostConfig.OomKillDisable)
	have.HostConfig.OomKillDisable = nil
	have.HostConfig.Runtime = "the daemon's default"
	all := len(have.HostConfig.MaskedPaths)
	have.HostConfig.MaskedPaths = slices.DeleteFunc(have.HostConfig.MaskedPaths, func(path string) bool {
		return strings.HasPrefix(path, "/sys/devices/system/cpu/cpu")
	})
	cores, _, err := e.Capacity(t.Context())
	require.NoError(t, err)
	require.Equal(t, cores, all-len(have.HostConfig.MaskedPaths), "one for each core")
	require.Len(t, have.Mounts, 1, "the terminals, and nothing of the host's")
	for name := range have.NetworkSettings.Networks {
		require.Equal(t, "none", name)
	}

	golden(t, "posture.json", map[string]any{"Config": have.Config, "HostConfig": have.HostConfig})
}

// TestInside holds what code sees of its sandbox against the golden file.
func TestInside(t *testing.T) {
	golden(t, "inside.json", runScript(t, "inside.py"))
}

// TestRefusals tries what must be refused.
func TestRefusals(t *testing.T) {
	got := runScript(t, "refusals.py")
	for label, outcome := range got {
		require.NotEqual(t, "done", outcome, label)
		require.NotEqual(t, "other", outcome, label)
	}
	for _, label := range []string{"int 0x80", "x32 getpid"} { // there are none on other machines
		if outcome, ok := got[label]; ok {
			require.Equal(t, "SIGSYS", outcome, "32-bit system calls end the process")
			delete(got, label)
		} else {
			require.NotEqual(t, "amd64", runtime.GOARCH)
		}
	}
	require.Equal(t, "ENOSYS", got["io_setup"], "so that a library does without")
	require.Equal(t, "ENOSYS", got["clone3"], "so that libraries use clone, whose flags a filter can see")
	golden(t, "refusals.json", got)
}

// runScript runs a file of testdata as the one cell of a run, and returns the
// JSON that it prints.
func runScript(t *testing.T, name string) map[string]any {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return runCode(t, string(source)).(map[string]any)
}

// runCode runs one cell, and returns the JSON that it prints.
func runCode(t *testing.T, source string) (v any) {
	t.Helper()
	document, err := json.Marshal(map[string]any{
		"nbformat": 4, "nbformat_minor": 4, "metadata": map[string]any{},
		"cells": []any{map[string]any{
			"cell_type": "code", "metadata": map[string]any{}, "outputs": []any{},
			"execution_count": nil, "source": "import warnings; warnings.simplefilter('ignore')\n" + source,
		}},
	})
	require.NoError(t, err)
	limits := runner.DefaultLimits()
	limits.Timeout = 2 * time.Minute // programs of all kinds, one after the other
	engine := newEngine(t, "test-posture-"+strings.ToLower(rand.Text()))
	recorder := runnertest.NewRecorder(t)
	out, err := runnertest.Once(t.Context(), engine, testLog(t), runner.Spec{
		ID: "posture", Environment: environment(t), Notebook: document, StopOnError: true, Limits: limits,
	}, recorder)
	require.NoError(t, err)
	recorder.Seal()
	var printed strings.Builder
	for _, e := range recorder.Events() {
		var output struct{ Text string }
		require.NoError(t, json.Unmarshal(e.Output, &output))
		printed.WriteString(output.Text)
	}
	require.Equal(t, runner.StatusOK, out.Status, "%s", out.Notebook)
	require.NoError(t, json.Unmarshal([]byte(printed.String()), &v), printed.String())
	return v
}

// golden compares v, as JSON, with a file of testdata, or writes it.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	have, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	have = append(have, '\n')
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, have, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, lines(want), lines(have), "run with -update, and look at what changes")
}

func lines(text []byte) []string {
	var all []string
	for line := range bytes.Lines(text) {
		all = append(all, string(line))
	}
	return slices.Clip(all)
}
