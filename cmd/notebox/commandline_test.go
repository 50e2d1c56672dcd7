package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"notebox/cmd/notebox/internal/completion"
)

// asProgram is the variable with which the test's own binary is notebox.
const asProgram = "NOTEBOX_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// installProgram puts notebox into a folder, and returns the folder.
func installProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	script := "#!/bin/sh\n" + asProgram + "=1 exec '" + self + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notebox"), []byte(script), 0o755))
	return folder
}

// notebox calls the program in an empty folder, with no variables but these.
func notebox(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return noteboxIn(t, t.TempDir(), environ, args...)
}

func noteboxIn(t *testing.T, folder string, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(installProgram(t), "notebox"), args...)
	c.Dir = folder
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder}, environ...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func TestNoteboxAlone(t *testing.T) {
	t.Parallel()
	out, errs, code := notebox(t, nil)
	require.Zero(t, code)
	require.Empty(t, errs)
	for _, command := range []string{"doctor", "run", "serve"} {
		require.Contains(t, out, "\n  notebox "+command+" ")
	}
	_, errs, code = notebox(t, nil, "sevre")
	require.Equal(t, 1, code)
	require.Equal(t, "notebox: no subcommand \"sevre\"; notebox -h lists them\n", errs)
	_, errs, code = notebox(t, nil, "-h")
	require.Zero(t, code)
	require.Contains(t, errs, "\n  healthcheck ")
	require.NotContains(t, errs, "\n  complete ")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, code := notebox(t, nil, "version")
	require.Zero(t, code)
	require.Regexp(t, `^notebox \S+, (commit [0-9a-f]{40}( with changes)?, )?`+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+"\n$", out)
	out, _, code = notebox(t, nil, "version", "--json")
	require.Zero(t, code)
	var b build
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	require.Equal(t, readBuild(), b)
}

// TestConfigInForce: each place where a setting can stand, and which of them counts.
func TestConfigInForce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	write(".env", "NOTEBOX_PIDS=100\nNOTEBOX_TIMEOUT=10s\nOTHER=1\n")
	write("notebox.conf", "pids = 200\ndrain = 5s\nmodel-base-url = https://me:secret1@models/v1\n")
	out, errs, code := noteboxIn(t, folder,
		[]string{"NOTEBOX_TIMEOUT=20s", "NOTEBOX_MEMORY=1g", "NOTEBOX_CONFIG=notebox.conf", "NOTEBOX_STORAGE=s3://b?region=x&access_key=secret2"},
		"config", "--json", "--memory", "3g", "--allow-origin", "https://a,https://b")
	require.Zero(t, code, errs)
	require.NotContains(t, out, "secret")
	var all []setting
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	got := map[string]setting{}
	for _, one := range all {
		got[one.Name] = one
	}
	for name, want := range map[string]setting{
		"memory":         {Value: "3GiB", From: fromFlag},
		"allow-origin":   {Value: "https://a,https://b", From: fromFlag},
		"timeout":        {Value: "20s", From: fromVariable},
		"config":         {Value: "notebox.conf", From: fromVariable},
		"storage":        {Value: "s3://b?access_key=xxxxx&region=x", From: fromVariable},
		"pids":           {Value: "100", From: fromDotenv},
		"drain":          {Value: "5s", From: fromConfig},
		"model-base-url": {Value: "https://xxxxx@models/v1", From: fromConfig},
		"listen":         {Value: "127.0.0.1:8080", From: fromDefault},
		"pool-max":       {Value: "twice --pool-size", From: fromDefault, Later: true},
		"max-waiting":    {Value: "twenty for each core, a hundred if runs have cells", From: fromDefault, Later: true},
	} {
		want.Name, want.Variable = name, variableOf(name)
		require.Equal(t, want, got[name])
	}
	require.Len(t, all, len(variablesOf(serveCommand().FlagSet)))

	out, _, code = noteboxIn(t, folder, nil, "config")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^pids +100 +\.env NOTEBOX_PIDS$`, out)
	require.Regexp(t, `(?m)^pool-max +\(twice --pool-size\) +default$`, out)

	_, errs, code = noteboxIn(t, folder, nil, "config", "--memory", "much")
	require.NotZero(t, code)
	require.Contains(t, errs, "memory")
}

// TestShellsComplete types a line and Tab into real shells.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	folder := installProgram(t)
	work := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(work, "keys.txt"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(work, "languages"), 0o700))
	for _, shell := range []struct {
		name string
		args []string
	}{
		{"bash", []string{"--norc", "--noprofile", "-i"}},
		{"zsh", []string{"-f", "-i"}},
		{"fish", []string{"--no-config", "-i"}},
	} {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell.name)
			require.NoError(t, err, "make clients installs it")
			for typed, want := range map[string]string{
				"notebox serv":                          "notebox serve",
				"notebox serve --lis":                   "notebox serve --listen",
				"notebox serve --isolation cel":         "notebox serve --isolation cell",
				"notebox serve --isolation=cel":         "notebox serve --isolation=cell",
				"notebox serve --api-keys-file ke":      "notebox serve --api-keys-file keys.txt",
				"notebox serve --environments-dir la":   "notebox serve --environments-dir languages/",
				"notebox completion fi":                 "notebox completion fish",
				"notebox serve --listen x --sandbox-ru": "notebox serve --listen x --sandbox-runtime",
			} {
				if shell.name == "fish" {
					require.Equal(t, want, fishCompletes(t, path, folder, work, typed))
					continue
				}
				require.Contains(t, typeInto(t, path, shell.args, folder, work, typed), want)
			}
		})
	}
}

func shellEnviron(folder string) []string {
	return []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "HOME=" + folder, "TERM=dumb", "PS1=> ", "LC_ALL=C.UTF-8"}
}

// typeInto types the line and Tab at a prompt, and returns what the terminal shows then.
func typeInto(t *testing.T, shell string, args []string, folder, work, typed string) string {
	t.Helper()
	script, err := completion.Script(filepath.Base(shell))
	require.NoError(t, err)
	if filepath.Base(shell) == "zsh" {
		script = "autoload -U compinit; compinit -u -D\n" + script
	}
	file := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	c := exec.CommandContext(t.Context(), shell, args...)
	c.Dir, c.Env = work, shellEnviron(folder)
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 50, Cols: 200})
	require.NoError(t, err)
	defer func() { terminal.Close(); _ = c.Process.Kill(); _ = c.Wait() }()
	var shown bytes.Buffer
	until := func(mark string) bool {
		buffer := make([]byte, 4096)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			if strings.Contains(shown.String(), mark) {
				return true
			}
			_ = terminal.SetReadDeadline(time.Now().Add(time.Second))
			n, _ := terminal.Read(buffer)
			shown.Write(buffer[:n])
		}
		return false
	}
	_, err = terminal.WriteString(". " + file + "; echo rea''dy\n")
	require.NoError(t, err)
	require.True(t, until("ready\r\n"), shown.String())
	shown.Reset()
	// The line is printed, not run: what the shell then prints is what it had completed.
	_, err = terminal.WriteString(typed + "\t")
	require.NoError(t, err)
	time.Sleep(time.Second) // for bash: it may write the rest in parts
	_, err = terminal.WriteString("\x01: \x05; echo do''ne\n")
	require.NoError(t, err)
	require.True(t, until("done\r\n"), shown.String())
	return shown.String()
}

// fishCompletes asks fish's own completion, whose line editor wants more of a terminal.
func fishCompletes(t *testing.T, fish, folder, work, typed string) string {
	t.Helper()
	script, err := completion.Script("fish")
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), fish, "--no-config", "-c", script+"\ncomplete -C "+"'"+typed+"'")
	c.Dir, c.Env = work, shellEnviron(folder)
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	word, _, _ := strings.Cut(strings.SplitN(string(out), "\n", 2)[0], "\t")
	return typed[:strings.LastIndex(typed, " ")+1] + word
}

// TestManPages are read without a warning, and there is one for each command that is listed.
func TestManPages(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, errs, code := notebox(t, nil, "man", folder)
	require.Zero(t, code, errs)
	files, err := filepath.Glob(folder + "/*.1")
	require.NoError(t, err)
	require.Contains(t, files, folder+"/notebox.1")
	require.Contains(t, files, folder+"/notebox-serve.1")
	require.NotContains(t, files, folder+"/notebox-complete.1")
	raw, err := os.ReadFile(folder + "/notebox-serve.1")
	require.NoError(t, err)
	require.Contains(t, string(raw), "\\fB\\-\\-listen\\fR \\fIaddress\\fR\nListen on this address. (default: 127.0.0.1:8080)\n")
	for _, reader := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-man", "-Tutf8", "-ww", "-z", "-Kutf8"}} {
		if path, err := exec.LookPath(reader[0]); err == nil {
			out, err := exec.Command(path, append(reader[1:], files...)...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Empty(t, string(out))
		}
	}
}
