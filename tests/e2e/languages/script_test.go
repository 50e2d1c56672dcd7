package languages

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

const (
	tests = "import asyncio, unittest\n" +
		"class Sums(unittest.TestCase):\n    def test_sum(self): self.assertEqual(sum([1, 1]), 2)\n" +
		"class Later(unittest.IsolatedAsyncioTestCase):\n    async def test_sleep(self): await asyncio.sleep(0)\n"
	coroutine = "import asyncio\nasync def main(n=5):\n    await asyncio.sleep(0.01)\n    return n\n"
)

// TestAsInAScript: where Jupyter's kernel behaves otherwise than Python does with a script, and
// people write scripts. These are the differences of notebox from nbconvert that
// TestConformance leaves out.
func TestAsInAScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc   string
		cells  []string
		with   map[string]any
		status string
		text   string // all of it, if it does not end in …
		raised string
	}{
		{desc: "exit 0", cells: []string{"import sys\nprint(1)\nsys.exit(0)\nprint(2)", "print(3)"}, status: "ok", text: "1\n"},
		{desc: "exit without a code", cells: []string{"import sys; sys.exit()", "print(3)"}, status: "ok"},
		{desc: "SystemExit", cells: []string{"raise SystemExit", "print(3)"}, status: "ok"},
		{desc: "exit()", cells: []string{"print(1)\nexit()\nprint(2)", "print(3)"}, status: "ok", text: "1\n"},
		{desc: "quit", cells: []string{"quit", "print(3)"}, status: "ok"},
		{desc: "exit 0 if cells go on after errors", cells: []string{"1/0", "exit(0)", "print(3)"}, with: map[string]any{"stop_on_error": false}, status: "error", text: "…", raised: "ZeroDivisionError"},
		{desc: "exit 0 in a coroutine", cells: []string{coroutine + "async def leave(): exit()\nasyncio.run(leave())", "print(3)"}, status: "ok"},
		{desc: "exit 3", cells: []string{"import sys\nsys.exit(3)", "print(3)"}, status: "error", text: "…", raised: "SystemExit"},
		{desc: "exit with words", cells: []string{"exit('no data')"}, status: "error", text: "…", raised: "SystemExit"},
		{desc: "what is left at exit", cells: []string{"f = open('a.txt', 'w')\nf.write('whole')\nexit()"}, status: "ok", text: "[file a.txt: …"},
		{desc: "no arguments", cells: []string{"import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=3)\nprint(p.parse_args().n, sys.argv)"}, status: "ok", text: "3 ['/mnt/data/main.py']\n"},
		{desc: "help", cells: []string{"import argparse\nargparse.ArgumentParser().parse_args(['-h'])", "print(3)"}, status: "ok", text: "usage: main.py [-h]\n…"},
		{desc: "a new kernel's arguments", cells: []string{"import sys\nprint(sys.argv)"}, with: map[string]any{"env": map[string]string{"A": "1"}}, status: "ok", text: "['/mnt/data/main.py']\n"},
		{desc: "tests that pass", cells: []string{tests + "unittest.main()", "print(3)"}, status: "ok", text: "..\n-----…"},
		{desc: "a test that fails", cells: []string{tests + "class Bad(unittest.TestCase):\n    def test_bad(self): self.fail()\nunittest.main()"}, status: "error", text: "…", raised: "SystemExit"},
		{desc: "asyncio.run", cells: []string{coroutine + "print(asyncio.run(main()))"}, status: "ok", text: "5\n"},
		{desc: "asyncio.run, twice, and await between", cells: []string{coroutine + "print(asyncio.run(main()))", "print(await main(6))", "print(asyncio.run(main(7)))", "t = asyncio.create_task(main(8))", "print(await t)"}, status: "ok", text: "5\n6\n7\n8\n"},
		{desc: "asyncio.run in a cell with await", cells: []string{coroutine + "await main()\nprint(asyncio.run(main()))"}, status: "ok", text: "5\n"},
		{desc: "a runner, and a loop of its own", cells: []string{coroutine + "with asyncio.Runner() as r: print(r.run(main()))\nprint(asyncio.new_event_loop().run_until_complete(main(6)))"}, status: "ok", text: "5\n6\n"},
		{desc: "asyncio.run that raises", cells: []string{"import asyncio\nasync def main():\n    1/0\nasyncio.run(main())"}, status: "error", text: "…", raised: "ZeroDivisionError"},
		{desc: "asyncio.run in a loop", cells: []string{coroutine + "async def outer(): asyncio.run(main())\nasyncio.run(outer())"}, status: "error", text: "…", raised: "RuntimeError"},
		{desc: "a byte order mark", cells: []string{"\ufeffprint(1)", "\ufeffprint(2)"}, status: "ok", text: "1\n2\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			request := map[string]any{"cells": c.cells}
			for name, value := range c.with {
				request[name] = value
			}
			r := shared.Execute(t, request)
			require.Equal(t, c.status, r.Status, r.Text)
			if part, open := strings.CutSuffix(c.text, "…"); open {
				require.True(t, strings.HasPrefix(r.Text, part), r.Text)
			} else {
				require.Equal(t, c.text, r.Text)
			}
			require.NotContains(t, r.Text, "3\n3\n")
			require.Equal(t, c.status == "ok", r.Error == nil)
			require.Equal(t, c.status == "ok", r.Hint == "", r.Hint)
			if c.raised != "" {
				require.Equal(t, c.raised, r.Error.Name)
			}
		})
	}
}

// TestEntrypointAsAScript: a program's file has its own arguments, and ends as code does.
func TestEntrypointAsAScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ desc, program, status, text string }{
		{"its arguments", "import sys\nprint(sys.argv, __name__)", "ok", "['/mnt/data/a.py'] __main__\n"},
		{"exit 0", "import sys\nprint(1)\nsys.exit(0)\nprint(2)", "ok", "1\n"},
		{"exit()", "print(1)\nexit()\nprint(2)", "ok", "1\n"},
		{"asyncio.run", coroutine + "print(asyncio.run(main()))", "ok", "5\n"},
		{"a byte order mark", "\ufeffprint(1)", "ok", "1\n"},
		{"exit 2", "import sys\nsys.exit(2)", "error", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, map[string]any{"entrypoint": "a.py", "files": []map[string]any{{"name": "a.py", "content": []byte(c.program)}}})
			require.Equal(t, c.status, r.Status, r.Text)
			require.True(t, strings.HasPrefix(r.Text, c.text), r.Text)
		})
	}
}

// TestSessionOutlivesExit: exit ends a run, and no session.
func TestSessionOutlivesExit(t *testing.T) {
	t.Parallel()
	p := &shared
	id := p.OpenSession(t, time.Minute)
	defer service.Ask(t, http.MethodDelete, p.URL+"/v1/sessions/"+id, "")
	require.Equal(t, "1\n", p.Step(t, id, "x = 1\nprint(x)\nexit()\nprint(2)"))
	require.Equal(t, "1\n", p.Step(t, id, "import sys\nprint(x)\nsys.exit()"))
	time.Sleep(300 * time.Millisecond) // IPython's own exit() ends its kernel after 100
	r := shared.Execute(t, map[string]any{"session": id, "cells": []string{"print(x)\nquit()", "print(3)"}})
	require.Equal(t, "1\n", r.Text)
	require.False(t, r.Session.KernelRestarted)
	require.Equal(t, "5\n", p.Step(t, id, coroutine+"print(asyncio.run(main()))"))
}

// TestDisplaysThatRaise make a run an error, whichever part of the kernel shows them.
func TestDisplaysThatRaise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ desc, code, raised string }{
		{"a figure at the cell's end", "import matplotlib.pyplot as plt\nplt.rcParams['text.usetex'] = True\nplt.title('a')\nprint('shown')", "RuntimeError"},
		{"display()", "class A:\n    def _repr_html_(self): 1/0\ndisplay(A())\nprint('shown')", "ZeroDivisionError"},
		{"a result", "class A:\n    def _repr_html_(self): 1/0\nprint('shown')\nA()", "ZeroDivisionError"},
		{"a handler that shows nothing", "get_ipython().set_custom_exc((KeyError,), lambda *a, **k: None)\nprint('shown')\n", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			cells := []string{c.code}
			if c.raised == "" {
				cells, c.raised = append(cells, "{}['a']"), "Exception"
			}
			r := shared.Execute(t, map[string]any{"cells": cells})
			require.Equal(t, "error", r.Status, r.Text)
			require.NotNil(t, r.Error)
			require.Equal(t, c.raised, r.Error.Name)
			require.NotEmpty(t, r.Hint)
			require.Contains(t, r.Text, "shown\n")
		})
	}
}

// TestWhatAModelSees of pictures, sound and films, of noise, and of what is missing.
func TestWhatAModelSees(t *testing.T) {
	t.Parallel()
	t.Run("a picture of Pillow's is one", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, map[string]any{"code": "import PIL.Image\nPIL.Image.new('RGB', (8, 6), 'red')"})
		require.Len(t, r.Images, 1)
		require.Equal(t, "image_0.png", r.Images[0].Name)
		require.Equal(t, "[image image_0.png: "+r.Images[0].URL+"]\n", r.Text)
	})
	t.Run("sound and films", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, map[string]any{"code": "from IPython.display import Audio, Video\nimport numpy as np\n" +
			"display(Audio(np.sin(np.arange(800)), rate=8000), Audio(url='https://example.org/a.mp3'), Video(url='clip.mp4'), Video(b'\\0', embed=True, mimetype='video/mp4'))"})
		lines := strings.Split(r.Text, "\n")
		require.Len(t, lines, 5, r.Text)
		require.Regexp(t, `^\[file output_0\.wav: http\S+\]$`, lines[0])
		require.Equal(t, []string{"[audio: https://example.org/a.mp3]", "[video: clip.mp4]"}, lines[1:3])
		require.Regexp(t, `^\[file output_1\.mp4: http\S+\]$`, lines[3])
		url := strings.TrimSuffix(strings.TrimPrefix(lines[0], "[file output_0.wav: "), "]")
		status, sound := service.Get(t, url)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "RIFF", string(sound[:4]))
	})
	t.Run("a font that is not there", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, map[string]any{"code": "import matplotlib.pyplot as plt\nplt.rcParams['font.family'] = 'Nowhere Sans'\n" +
			"for i in range(30): plt.text(0, i, f'text {i}', size=i + 1)"})
		require.Equal(t, "ok", r.Status)
		require.LessOrEqual(t, strings.Count(r.Text, "findfont"), 1, r.Text)
	})
	t.Run("a long print", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, map[string]any{"code": "print('x' * 3_000_000)"})
		require.LessOrEqual(t, len(r.Text), 256<<10)
		require.Regexp(t, `\n\[the whole text: http\S+\]\n$`, r.Text)
		require.False(t, r.Truncated)
	})
	t.Run("a package that a library wants", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, map[string]any{"code": "import sys\nsys.modules['tabulate'] = None\nimport pandas as pd\npd.DataFrame({'a': [1]}).to_markdown()"})
		require.Contains(t, r.Hint, "The package tabulate is not installed")
	})
}

// TestFilesElsewhere are named, once, where somebody may look for them.
func TestFilesElsewhere(t *testing.T) {
	t.Parallel()
	reason := "save it below /mnt/data"
	named := func(r service.Reply) (paths []string) {
		for _, s := range r.Skipped {
			require.Equal(t, reason, s.Reason)
			paths = append(paths, s.Path)
		}
		return paths
	}
	for _, c := range []struct {
		desc, code string
		want       []string
	}{
		{"nothing", "1", nil},
		{"a plot, tables and imports alone", "import matplotlib.pyplot as plt, pandas as pd, seaborn, sklearn, plotly\nplt.plot([1])\npd.DataFrame({'a': [1]}).to_csv('/mnt/data/a.csv')", nil},
		{"a temporary file", "import tempfile\nwith tempfile.NamedTemporaryFile() as f: f.write(b'1')", nil},
		{"in /tmp", "open('/tmp/a.csv', 'w').write('1')", []string{"/tmp/a.csv"}},
		{"in home", "import pathlib\n(pathlib.Path.home() / 'b.txt').write_text('1')", []string{"/tmp/home/b.txt"}},
		{"after chdir", "import os, tempfile\nos.mkdir('/tmp/x', 0o700)\nos.chdir('/tmp/x')\nopen('c.png', 'w').write('1')", []string{"/tmp/x/c.png"}},
		{"and below /mnt/data", "open('/tmp/a.csv', 'w').write('1'); open('kept.csv', 'w').write('1')", []string{"/tmp/a.csv"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, map[string]any{"code": c.code})
			require.Equal(t, "ok", r.Status, r.Text)
			require.Equal(t, c.want, named(r))
			require.Equal(t, len(c.want) > 0, strings.Contains(r.Text, "[not returned: "+strings.Join(c.want, ", ")+"; save files below /mnt/data]\n"), r.Text)
			require.Empty(t, r.Hint)
			require.Equal(t, strings.Contains(c.code, "kept.csv"), slices.ContainsFunc(r.Files, func(f service.File) bool { return f.Name == "kept.csv" }))
		})
	}
	t.Run("in a session", func(t *testing.T) {
		t.Parallel()
		id := shared.OpenSession(t, time.Minute)
		defer service.Ask(t, http.MethodDelete, shared.URL+"/v1/sessions/"+id, "")
		for _, step := range []struct {
			code string
			want []string
		}{
			{"open('/tmp/a', 'w').write('1'); import os; os.mkdir('/tmp/shut', 0o700)", []string{"/tmp/a"}},
			{"1", nil},
			{"open('/tmp/shut/b', 'w').write('1')", []string{"/tmp/shut/b"}},
			{"open('/tmp/a', 'w').write('2')", []string{"/tmp/a"}},
		} {
			time.Sleep(50 * time.Millisecond) // more than a tick of the clock of file times
			require.Equal(t, step.want, named(shared.Execute(t, map[string]any{"session": id, "code": step.code})), step.code)
		}
	})
}
