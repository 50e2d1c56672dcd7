package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func TestLineOfAnEntrypoint(t *testing.T) {
	for _, c := range []struct {
		desc, name, traceback string
		line                  int
	}{
		{"IPython", "a b.py", "ZeroDivisionError  Traceback (most recent call last)\nCell In[1], line 6\n\nFile /mnt/data/a b.py:9\n\nFile /mnt/data/a b.py:4, in f()\n\nFile /mnt/data/lib.py:2\n", 4},
		{"Python", "m.py", "Traceback (most recent call last):\n  File \"/mnt/data/m.py\", line 3, in <module>\n  File \"/mnt/data/m.pyx\", line 5\n", 3},
		{"Deno", "a b'.ts", "Error: x\n    at f (file:///mnt/data/a%20b'.ts:3:7)\n    at file:///mnt/data/a%20b'.ts:9:1\n", 3},
		{"Deno, a run of many", "a#b.js", "Error: x\n    at file:///mnt/data/lib.js:2:1\n    at file:///mnt/data/a%23b.js?run=1795404674979:5:9\n", 5},
		{"Deno, no run", "a.js", "    at file:///mnt/data/a.js?run=x:5:9\n", 0},
		{"bash", "run.sh", "/mnt/data/run.sh: line 12: nope: command not found", 12},
		{"Lua", "m.lua", "/mnt/data/m.lua:3: attempt\nstack traceback:\n\t/mnt/data/m.lua:7: in main chunk", 3},
		{"another file", "m.py", "File /mnt/data/xm.py:3\nFile /x/mnt/data/m.py:3\n", 0},
		{"no number", "m.py", "/mnt/data/m.py:x", 0},
		{"no line of a file", "m.py", "/mnt/data/m.py:9999999999", 0},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.line, entrypointLine(c.name, &notebook.Exception{Traceback: c.traceback}))
		})
	}
}
