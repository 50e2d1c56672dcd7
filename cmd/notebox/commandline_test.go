package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"notebox/cmd/notebox/internal/completion"
	"notebox/doctor"
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

// TestWrongFlag: what is wrong is one line, and not lost in pages of help.
func TestWrongFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nope"}, "flag provided but not defined: -nope; notebox -h lists the flags"},
		{[]string{"serve", "--nope"}, "flag provided but not defined: -nope; notebox serve -h lists the flags"},
		{[]string{"session", "open", "--ttl", "x"}, `invalid value "x" for flag -ttl: parse error; notebox session open -h lists the flags`},
		{[]string{"run", "file.py", "--nope"}, "flag provided but not defined: -nope; notebox run -h lists the flags"},
	} {
		out, errs, code := notebox(t, nil, c.args...)
		require.Equal(t, 2, code)
		require.Empty(t, out)
		require.Equal(t, "notebox: "+c.want+"\n", errs)
	}
	_, errs, code := notebox(t, nil, "run", "file.py", "-h")
	require.Zero(t, code)
	require.Contains(t, errs, "\n  -out folder ")
	_, errs, code = notebox(t, nil, "session")
	require.Zero(t, code)
	require.Contains(t, errs, "\n  open ")
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
	require.NotRegexp(t, "secret[12]", out)
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
		"storage":        {Value: "s3://b?region=x&access_key=xxxxx", From: fromVariable},
		"pids":           {Value: "100", From: dotenv},
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

	require.NoError(t, os.WriteFile(filepath.Join(folder, "open.conf"), []byte("image = reg.example:5000/nb/python:1@sha256:abcd\n"), 0o644))
	out, errs, code = noteboxIn(t, folder, nil, "config", "--config", "open.conf")
	require.Zero(t, code, errs, "a digest is no secret, and the file may be open")
	require.Contains(t, out, " reg.example:5000/nb/python:1@sha256:abcd ")
	_, errs, code = noteboxIn(t, folder, []string{"NOTEBOX_CONFIG=none.conf"}, "config")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "none.conf")

	_, errs, code = noteboxIn(t, folder, nil, "config", "--memory", "much")
	require.NotZero(t, code)
	require.Contains(t, errs, "memory")
	_, errs, code = noteboxIn(t, folder, []string{"NOTEBOX_CPUS=many", "NOTEBOX_MEMORY=much"}, "config")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "NOTEBOX_CPUS=many")
	require.Contains(t, errs, "NOTEBOX_MEMORY=much", "all that is wrong is told at once")
}

// TestHideSecrets: nothing that signs in is shown, wherever in a value it stands.
func TestHideSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ desc, value, want string }{
		{"nothing", "127.0.0.1:8080", "127.0.0.1:8080"},
		{"a list of hosts", "a.example:443,b.example", "a.example:443,b.example"},
		{"a URL", "https://host:8080/v1?region=x", "https://host:8080/v1?region=x"},
		{"a password", "https://me:hush@host/v1", "https://xxxxx@host/v1"},
		{"a name alone may be a token", "https://hush@host/v1", "https://xxxxx@host/v1"},
		{"capitals", "HTTPS://me:hush@host/v1", "HTTPS://xxxxx@host/v1"},
		{"a list", "https://a:hush@x,HTTP://b:hush@y/z,https://w", "https://xxxxx@x,HTTP://xxxxx@y/z,https://w"},
		{"a list with blanks", "https://a:hush@x, https://b:hush@y", "https://xxxxx@x, https://xxxxx@y"},
		{"a comma in a password", "https://me:hu,hush@host", "https://xxxxx@host"},
		{"a slash in a password", "https://me:1/hush@host", "https://xxxxx@host"},
		{"an at in a password", "https://me:hush@hush@host", "https://xxxxx@host"},
		{"a blank in a password", "https://me:hu hush@host", "https://xxxxx@host"},
		{"no URL after all", "https://me:hush%zz@[host", "https://xxxxx@[host"},
		{"without a scheme", "me:hush@host:8080,https://a:hush@x", "xxxxx@host:8080,https://xxxxx@x"},
		{"a query", "s3://b?region=x&Access_Key=hush&x-amz-Signature=hush", "s3://b?region=x&Access_Key=xxxxx&x-amz-Signature=xxxxx"},
		{"a query in a list", "https://a?sig=hush,https://b?token=hush&c=d", "https://a?sig=xxxxx,https://b?token=xxxxx&c=d"},
		{"an escaped name", "https://a?%73ig=hush", "https://a?%73ig=xxxxx"},
		{"semicolons", "https://a?b=c;token=hush", "https://a?b=c;token=xxxxx"},
		{"empty pairs", "https://a?&b=c&&token=hush&", "https://a?&b=c&&token=xxxxx&"},
		{"no value", "https://a?token=&b", "https://a?token=&b"},
		{"an at in a query", "https://host/v1?user=a@b&token=hush", "https://xxxxx@b&token=xxxxx"},
		{"an at in a token", "https://host/v1?token=hush@hush&a=b", "https://xxxxx&a=b"},
		{"a comma in a token", "https://host/v1?token=1,hush;hush#hush&a=b", "https://host/v1?token=xxxxx&a=b"},
		{"a fragment", "https://host/#access_token=hush", "https://host/#access_token=xxxxx"},
		{"a list without schemes", "https://h?x=1,b?token=hush", "https://h?x=1,b?token=xxxxx"},
		{"an image with a digest", "reg.example:5000/nb/python:1@sha256:abcd", "reg.example:5000/nb/python:1@sha256:abcd"},
		{"a password before such an image", "me:hush@reg.example:5000/nb/python:1@sha256:abcd", "xxxxx@reg.example:5000/nb/python:1@sha256:abcd"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			got, found := hideSecrets(c.value)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want != c.value, found)
			require.NotContains(t, got, "hush")
		})
	}
}

// TestDoctorOfBadSettings: invalid values are one line of the report, and do not end it.
func TestDoctorOfBadSettings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, ".env"), []byte("NOTEBOX_DRAIN=soon\nno variable\nNOTEBOX_LISTEN=127.0.0.1:0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bad.conf"), []byte("timeout = long\nmax-running = few\nlink-keys = keys\n"), 0o600))
	out, errs, code := noteboxIn(t, folder, []string{
		"DOCKER_HOST=nonsense", "NOTEBOX_PIDS=few", "NOTEBOX_CONFIG=bad.conf", "NOTEBOX_ENVIRONMENTS_DIR=/none",
	}, "doctor", "--json")
	require.Equal(t, 1, code, errs)
	require.Equal(t, "notebox: no run works here\n", errs)
	var r doctor.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	require.False(t, r.Works)
	require.Equal(t, "settings", r.Checks[0].Check)
	require.Equal(t, doctor.Wrong, r.Checks[0].Level)
	for _, want := range []string{"NOTEBOX_PIDS=few", ".env: line 1: NOTEBOX_DRAIN=soon", "line 2 is not NAME=value", "bad.conf: line 1", `"timeout"`, `"max-running"`, "--environments-dir: stat /none"} {
		require.Contains(t, r.Checks[0].Message, want)
	}
	require.NotContains(t, r.Checks[0].Message, "out of range", "one fault is told once")
	require.NotEmpty(t, r.Checks[0].Mend)
	require.Equal(t, "engine", r.Checks[1].Check)
	require.Contains(t, r.Checks[1].Message, "nonsense")
	for _, line := range r.Checks {
		if line.Check == "port" {
			require.Equal(t, doctor.OK, line.Level, "the good lines of the file are heeded: %+v", line)
		}
	}
}

// TestDoctorToldToEnd: a doctor that a signal ended has not found that no run works.
func TestDoctorToldToEnd(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var hung atomic.Bool
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info") && hung.CompareAndSwap(false, true) {
			close(asked)
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "[]")
	}))
	t.Cleanup(daemon.Close)
	folder := t.TempDir()
	c := exec.CommandContext(t.Context(), filepath.Join(installProgram(t), "notebox"), "doctor")
	c.Dir, c.Env = folder, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "DOCKER_HOST=tcp://" + daemon.Listener.Addr().String()}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(t, c.Start())
	<-asked
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	_ = c.Wait()
	require.Equal(t, 143, c.ProcessState.ExitCode())
	require.Regexp(t, `^ok +settings .*\n$`, out.String(), "what it has found before")
	require.Equal(t, "notebox: terminated\n", errs.String())
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
