package cells_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
	"notebox/runner/runnertest"
)

// language is an environment, and a print in it.
type language struct {
	runner.Environment
	code, stdout string
}

// languages are those whose images are there, with the print of testdata/cases.json.
func languages(t testing.TB) (out []language) {
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, e := range all {
		if exec.Command("docker", "image", "inspect", e.Image).Run() != nil {
			t.Logf("%s: make images builds it", e.Image)
			continue
		}
		raw, err := os.ReadFile(filepath.Join("../../environments", e.Name, "testdata/cases.json"))
		require.NoError(t, err)
		var known struct{ Print struct{ Code, Stdout string } }
		require.NoError(t, json.Unmarshal(raw, &known))
		k := e.Kernel
		out = append(out, language{
			Environment: runner.Environment{Name: e.Name, Image: e.Image, Kernel: runner.Kernel{
				Name: k.Name, WarmUp: k.WarmUp, Interrupts: k.Interrupts, Finishes: k.Finishes, Env: k.Env,
			}},
			code: known.Print.Code, stdout: known.Print.Stdout,
		})
	}
	return out
}

// TestLanguages: a cell has the kernel of its image. It is started anew for a run with variables.
func TestLanguages(t *testing.T) {
	engine := newEngine(t, "test-languages-"+strings.ToLower(rand.Text()))
	for _, l := range languages(t) {
		for desc, env := range map[string]map[string]string{"as it waits": nil, "with variables": {"NOTEBOX_TEST": "1"}} {
			t.Run(l.Name+", "+desc, func(t *testing.T) {
				s := spec(t, l.code)
				s.Environment, s.Env = l.Environment, env
				require.Equal(t, l.stdout, printed(t, engine, s))
			})
		}
	}
}

// TestPackagesOfACaller have a container: no zygote imports them.
func TestPackagesOfACaller(t *testing.T) {
	engine := newEngine(t, "test-languages-"+strings.ToLower(rand.Text()))
	env := environment(t)
	env.Kernel.Packages = true
	s, err := engine.Start(t.Context(), env, smallLimits())
	require.NoError(t, err)
	defer s.Kill(t.Context())
	require.NotContains(t, s.ID(), "-cell-")
	require.NoError(t, runnertest.Ready(s))
}

// TestKernelIsStartedAnew where variables or files are looked at once, when an interpreter
// starts or a library is imported.
func TestKernelIsStartedAnew(t *testing.T) {
	engine := newEngine(t, "test-languages-"+strings.ToLower(rand.Text()))
	const early = "import sys, json; print(json.dumps('numpy' in sys.modules))"
	for _, c := range []struct {
		desc, code string
		change     func(*runner.Spec)
		want       string
	}{
		{desc: "neither", code: early, change: func(*runner.Spec) {}, want: "true\n"},
		{desc: "a variable", code: early, change: withVariable, want: "false\n"},
		{
			desc: "a variable that an interpreter reads", code: "import sys; print(sys.flags.hash_randomization)",
			change: func(s *runner.Spec) { s.Env = map[string]string{"PYTHONHASHSEED": "0"} }, want: "0\n",
		},
		{desc: "a file that hides a library", code: "import numpy; print(numpy.mine)", change: withHidden, want: "1\n"},
		{desc: "one that hides none", code: early, change: func(s *runner.Spec) {
			s.Inputs = []runner.Input{runnertest.TextInput("mine.py", "")}
		}, want: "true\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := spec(t, c.code)
			c.change(&s)
			require.Equal(t, c.want, printed(t, engine, s))
		})
	}
}

func withVariable(s *runner.Spec) { s.Env = map[string]string{"NOTEBOX_TEST": "1"} }

func withHidden(s *runner.Spec) {
	s.Inputs = []runner.Input{runnertest.TextInput("numpy.py", "mine = 1")}
}

// TestProgramsAreForked: a kernel that is a program of Python is a fork of its cell's harness, but
// not where it is started anew.
func TestProgramsAreForked(t *testing.T) {
	engine := newEngine(t, "test-languages-"+strings.ToLower(rand.Text()))
	for _, l := range languages(t) {
		if l.Name != "bash" {
			continue
		}
		s := spec(t, `tr '\0' ' ' </proc/$PPID/cmdline`)
		s.Environment = l.Environment
		require.Contains(t, printed(t, engine, s), "/opt/notebox zygote")
		s.Env = map[string]string{"NOTEBOX_TEST": "1"}
		require.Contains(t, printed(t, engine, s), "/opt/bash-kernel/bashkernel.py")
	}
}
