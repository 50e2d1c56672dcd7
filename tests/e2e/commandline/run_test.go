package commandline

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExits: the exit status follows what became of the run, wherever it ran.
func TestExits(t *testing.T) {
	inPlaces(t, func(t *testing.T, env []string) {
		for _, c := range []struct {
			desc string
			args []string
			exit int
			out  string
			said string // is in what is said on stderr
		}{
			{"ok", []string{"-c", "import sys; print(6*7); print('aside', file=sys.stderr)"}, 0, "42\n", "aside"},
			{"flags after the code", []string{"-c", "print(1)", "--timeout", "20s"}, 0, "1\n", ""},
			{"the value of the last line", []string{"-c", "6*7"}, 0, "42\n", ""},
			{"raised", []string{"-c", "print(1)\n1/0"}, 1, "1\n", "ZeroDivisionError: division by zero"},
			{"a language", []string{"--language", "bash", "-c", "echo hi; exit 3"}, 1, "hi\n", "exit code 3"},
			{"timeout", []string{"-c", "print(1)\nwhile True: pass", "--timeout", "1s"}, 124, "1\n", "timeout"},
			{"killed", []string{"-c", "import os; os.kill(os.getpid(), 9)"}, 137, "", "killed"},
			{"out of memory", []string{"-c", "x = bytearray(8 << 30)"}, 137, "", "out of memory"},
			{"output limit", []string{"-c", "while True: print('x' * 100000)"}, 141, "", "output limit"},
			{"no such file", []string{"none.py"}, 2, "", "none.py"},
			{"no such input", []string{"-c", "1", "--file", "none.csv"}, 2, "", "none.csv"},
			{"no such flag", []string{"--nope", "-c", "1"}, 2, "", "nope"},
			{"no such flag, behind", []string{"-c", "1", "x.py", "--nope"}, 2, "", "nope"},
			{"no such language", []string{"-c", "1", "--language", "klingon"}, 2, "", "klingon"},
			{"two programs", []string{"-c", "1", "x.py"}, 2, "", "not both"},
			{"nothing to run", nil, 2, "", "notebox run -h"},
			{"no such session", []string{"-c", "1", "--session", "ses_none"}, 2, "", "session"},
			{"a timeout that nobody gives", []string{"-c", "1", "--timeout", "100h"}, 2, "", "timeout"},
		} {
			t.Run(c.desc, func(t *testing.T) {
				t.Parallel()
				got := call{args: append([]string{"run"}, c.args...), env: env}.run(t)
				require.Equal(t, c.exit, got.exit, "%s%s", got.out, got.said)
				if c.desc != "output limit" { // of which there are 8 MiB
					require.Equal(t, c.out, got.out)
				}
				require.Contains(t, got.said, c.said)
			})
		}
	})
}

func TestNoNotebox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ desc, env, said string }{
		{"no daemon", "DOCKER_HOST=unix:///no-daemon", "Docker daemon"},
		{"no service", "NOTEBOX_URL=http://127.0.0.1:1", "notebox serve starts one"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			got := call{args: []string{"run", "-c", "1"}, env: []string{c.env}}.run(t)
			require.Equal(t, 3, got.exit)
			require.Contains(t, got.said, c.said)
		})
	}
}

// TestTerminated: SIGTERM ends the run, and nothing of it is left when the command has ended.
func TestTerminated(t *testing.T) {
	t.Parallel()
	image, folder := newImage(t), t.TempDir()
	c := call{args: []string{"run", "-c", "import time\nprint('sleeps', flush=True)\ntime.sleep(100)"}, env: []string{"NOTEBOX_IMAGE=" + image, "TMPDIR=" + folder}}
	cmd := c.command(t)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, len("sleeps"))
	_, err = io.ReadFull(out, line)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // its status is what is asked for
	require.Equal(t, 143, cmd.ProcessState.ExitCode())
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(folder)
		return err == nil && len(left) == 0 && len(containersFrom(t, image)) == 0
	}, soon, 100*time.Millisecond)
}

// TestPrograms: files of several languages, a notebook, and standard input.
func TestPrograms(t *testing.T) {
	folder := write(t, map[string]string{
		"main.py":           "import helper, sys\nprint(helper.hello(), __name__, len(sys.argv))",
		"helper.py":         "def hello(): return 'hello'",
		"main.js":           "console.log([1, 2].map(x => x * 21)[1])",
		"main.ts":           "const x: number = 42; console.log(x)",
		"main.sh":           "echo $((6*7))",
		"main.R":            "cat(6*7, '\\n')",
		"tool":              "#!/usr/bin/env -S bash -e\necho $((6*7))",
		"book.ipynb":        `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"id":"a","cell_type":"code","metadata":{},"outputs":[],"execution_count":null,"source":"x = 41"},{"id":"b","cell_type":"code","metadata":{},"outputs":[],"execution_count":null,"source":"x + 1"}]}`,
		"data/in/table.csv": "a,b\n1,2\n",
	})
	inPlaces(t, func(t *testing.T, env []string) {
		for _, c := range []struct {
			desc string
			args []string
			in   string
			out  string
		}{
			{"Python", []string{"main.py", "--file", "helper.py"}, "", "hello __main__ 1\n"},
			{"JavaScript", []string{"main.js"}, "", "42\n"},
			{"TypeScript", []string{"main.ts"}, "", "42\n"},
			{"bash", []string{"main.sh"}, "", "42\n"},
			{"R", []string{"main.R"}, "", "42 \n"},
			{"a first line", []string{"tool"}, "", "42\n"},
			{"a notebook", []string{"book.ipynb"}, "", "42\n"},
			{"standard input", []string{"-"}, "print(__name__)", "__main__\n"},
			{"standard input is not read", []string{"-c", "print(1)"}, "print(2)", "1\n"},
			{"a folder", []string{"-c", "print(open('data/in/table.csv').read(), end='')", "--file", "data"}, "", "a,b\n1,2\n"},
			{"variables", []string{"-c", "import os; print(os.environ['A'], os.environ['B'])", "--env", "A=1", "--env", "B=x=y"}, "", "1 x=y\n"},
		} {
			t.Run(c.desc, func(t *testing.T) {
				t.Parallel()
				got := call{args: append([]string{"run"}, c.args...), env: env, stdin: c.in, dir: folder}.run(t)
				require.Equal(t, ended{out: c.out}, got)
			})
		}
	})
	t.Run("a notebook on standard input", func(t *testing.T) {
		t.Parallel()
		raw, err := os.ReadFile(filepath.Join(folder, "book.ipynb"))
		require.NoError(t, err)
		require.Equal(t, ended{out: "42\n"}, call{args: []string{"run", "-"}, stdin: string(raw)}.run(t))
	})
	t.Run("an error names its file and line", func(t *testing.T) {
		t.Parallel()
		folder := write(t, map[string]string{"bad.py": "x = 1\nx.nope\n"})
		got := call{args: []string{"run", "bad.py"}, dir: folder}.run(t)
		require.Equal(t, 1, got.exit)
		require.Contains(t, got.said, "bad.py:2")
	})
}

const maker = `import os, matplotlib.pyplot as plt
os.makedirs("deep/er"); open("deep/er/a.txt", "w").write("abc"); open("b.csv", "w").write("1,2\n")
plt.plot([1, 2]); plt.show()
open("/tmp/lost.txt", "w").write("x")`

// TestWhatIsMade: files, images and the notebook are where they were asked for, or are named.
func TestWhatIsMade(t *testing.T) {
	inPlaces(t, func(t *testing.T, env []string) {
		folder := t.TempDir()
		got := call{args: []string{"run", "-c", maker, "--out", "made", "--notebook", "executed.ipynb"}, env: env, dir: folder}.run(t)
		require.Zero(t, got.exit, got.said)
		for name, content := range map[string]string{"deep/er/a.txt": "abc", "b.csv": "1,2\n"} {
			raw, err := os.ReadFile(filepath.Join(folder, "made", name))
			require.NoError(t, err)
			require.Equal(t, content, string(raw))
			require.Contains(t, got.said, filepath.Join("made", name))
		}
		image, err := os.ReadFile(filepath.Join(folder, "made", "image_0.png"))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(image), "\x89PNG"))
		require.Contains(t, got.said, "/tmp/lost.txt: save it below /mnt/data")
		raw, err := os.ReadFile(filepath.Join(folder, "executed.ipynb"))
		require.NoError(t, err)
		var book struct {
			Format int `json:"nbformat"`
			Cells  []struct{ Outputs []map[string]any }
		}
		require.NoError(t, json.Unmarshal(raw, &book))
		require.Equal(t, 4, book.Format)
		require.NotEmpty(t, book.Cells[0].Outputs)

		got = call{args: []string{"run", "-c", maker}, env: env, dir: folder}.run(t)
		require.Zero(t, got.exit, got.said)
		if env == nil {
			require.Contains(t, got.said, "not kept: ")
			require.Contains(t, got.said, "b.csv")
		} else {
			require.Contains(t, got.said, "b.csv (4B): "+shared.URL+"/v1/files/")
		}

		got = call{args: []string{"run", "-c", maker, "--json", "--out", "also"}, env: env, dir: folder}.run(t)
		var reply struct {
			Status string
			Files  []struct{ Path string }
			Images []struct{ Data string }
		}
		require.NoError(t, json.Unmarshal([]byte(got.out), &reply), got.out)
		require.Equal(t, "ok", reply.Status)
		require.Len(t, reply.Files, 2)
		require.NotEmpty(t, reply.Images[0].Data)
		require.Empty(t, got.said)
		require.FileExists(t, filepath.Join(folder, "also", "b.csv"))
	})
}

// TestPlacesAreLookedAtFirst: what cannot be saved is known before the code runs.
func TestPlacesAreLookedAtFirst(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"taken": ""})
	for _, args := range [][]string{{"--notebook", "none/x.ipynb"}, {"--out", "taken"}} {
		got := call{args: append([]string{"run", "-c", "print(1)"}, args...), dir: folder}.run(t)
		require.Equal(t, 2, got.exit, got.said)
		require.Empty(t, got.out)
		require.Contains(t, got.said, args[0])
	}
}

// TestOutputThatIsLost: nobody takes a run for good whose output did not get out.
func TestOutputThatIsLost(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	c := call{args: []string{"run", "-c", "print(1)"}, env: []string{"NOTEBOX_URL=" + shared.URL}}
	cmd := c.command(t)
	cmd.Stdout = full
	require.Error(t, cmd.Run())
	require.Equal(t, 3, cmd.ProcessState.ExitCode())
}

// TestStrangersFolder: what a folder's .env says is nothing to a run there.
func TestStrangersFolder(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{".env": "FOO\nNOTEBOX_URL=http://127.0.0.1:1\n"})
	require.Equal(t, ended{out: "1\n"}, call{args: []string{"run", "-c", "print(1)"}, dir: folder}.run(t))
}

// TestFolders: a folder that a link leads to, and the one above, have their names.
func TestFolders(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"real/a.txt": "a"})
	require.NoError(t, os.Symlink("real", filepath.Join(folder, "link")))
	env := []string{"NOTEBOX_URL=" + shared.URL}
	got := call{args: []string{"run", "-c", "print(open('link/a.txt').read())", "--file", "link"}, dir: folder, env: env}.run(t)
	require.Equal(t, ended{out: "a\n"}, got)
	above := write(t, map[string]string{"here/x": ""})
	got = call{args: []string{"run", "-c", "import os; print(len(os.listdir()), os.listdir()[0])", "--file", ".."}, dir: filepath.Join(above, "here"), env: env}.run(t)
	require.Equal(t, ended{out: "1 " + filepath.Base(above) + "\n"}, got)
	got = call{args: []string{"run", "-c", "1", "--file", "."}, dir: folder, env: env}.run(t)
	require.Equal(t, 2, got.exit, "a folder that a link leads to is not left out in silence")
}

// TestNoWayOut: what the code makes stays in the folder, whatever is there.
func TestNoWayOut(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "made"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "made", "link")))
	code := "import os; os.mkdir('link'); open('link/a', 'w').write('x'); open('b\\x1b[2J', 'w').write('y')"
	got := call{args: []string{"run", "-c", code, "--out", "made"}, dir: folder}.run(t)
	require.Equal(t, 3, got.exit, got.said)
	require.NoFileExists(t, filepath.Join(outside, "a"))
	got = call{args: []string{"run", "-c", "open('b\\x1b[2J', 'w').close()", "--out", "taken"}, dir: write(t, map[string]string{"taken/b\x1b[2J/x": ""})}.run(t)
	require.Equal(t, 3, got.exit, got.said)
	require.NotContains(t, got.said, "\x1b")
	require.FileExists(t, filepath.Join(folder, "made", "b\x1b[2J"), "one that cannot be written does not keep the others")
}

// TestAsItHappens: output is there while the code runs.
func TestAsItHappens(t *testing.T) {
	inPlaces(t, func(t *testing.T, env []string) {
		c := call{args: []string{"run", "-c", "print('early', flush=True)\nimport time; time.sleep(60)"}, env: env}
		cmd := c.command(t)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		begun := time.Now()
		buffer := make([]byte, 6)
		_, err = out.Read(buffer)
		require.NoError(t, err)
		require.Equal(t, "early\n", string(buffer))
		require.Less(t, time.Since(begun), time.Minute)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Error(t, cmd.Wait())
		require.Equal(t, 130, cmd.ProcessState.ExitCode())
	})
}

// TestNothingIsLeft: of a run that is killed no sandbox, no process and no folder is there
// thirty seconds later; of one that ends nothing is there at once.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc string
		end  os.Signal
	}{{"killed", syscall.SIGKILL}, {"terminated", syscall.SIGTERM}, {"interrupted", os.Interrupt}} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			c2 := call{args: []string{"run", "-c", "print('early', flush=True)\nimport time; time.sleep(100)"}, env: []string{"TMPDIR=" + folder}}
			cmd := c2.command(t)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			_, err = out.Read(make([]byte, 6))
			require.NoError(t, err)
			ids, err := filepath.Glob(filepath.Join(folder, "notebox-run-*", "service-id"))
			require.NoError(t, err)
			require.Len(t, ids, 1)
			id, err := os.ReadFile(ids[0])
			require.NoError(t, err)
			require.Len(t, containersOf(t, strings.TrimSpace(string(id))), 1)
			require.NoError(t, cmd.Process.Signal(c.end))
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool {
				left, err := os.ReadDir(folder)
				return err == nil && len(left) == 0 && len(containersOf(t, strings.TrimSpace(string(id)))) == 0
			}, 30*time.Second, 100*time.Millisecond)
		})
	}
}

// TestKilledAtAnyMoment: nor is anything left of runs that are killed while their sandbox is made.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	image := newImage(t)
	folder := t.TempDir()
	for i := range 12 {
		c := call{args: []string{"run", "-c", "import time; time.sleep(100)"}, env: []string{"TMPDIR=" + folder, "NOTEBOX_IMAGE=" + image}}
		cmd := c.command(t)
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(i) * 80 * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
	}
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(folder)
		return err == nil && len(left) == 0 && len(containersFrom(t, image)) == 0
	}, 30*time.Second, 100*time.Millisecond)
}

// TestBesideOthers: runs at one time, beside a service, share nothing.
func TestBesideOthers(t *testing.T) {
	t.Parallel()
	for range 3 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			require.Equal(t, ended{out: "[]\n"}, call{args: []string{"run", "-c", "import os; print(os.listdir()); open('x', 'w').close(); os.remove('x')"}}.run(t))
		})
	}
}

// TestSettingsOfServe: what bounds a service's runs bounds these too.
func TestSettingsOfServe(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"run", "-c", "print('x' * 100000)"}, env: []string{"NOTEBOX_MAX_OUTPUT=10KiB", "NOTEBOX_API_KEYS_FILE=/none", "NOTEBOX_LISTEN=256.0.0.1:1", "NOTEBOX_STATE_DIR=/proc/none"}}.run(t)
	require.Equal(t, 141, got.exit, got.said)
}
