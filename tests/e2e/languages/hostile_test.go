package languages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhateverTheKernelSends: code can make its kernel say anything. What is no
// output is left out with a reason, and the run goes on.
func TestWhateverTheKernelSends(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"stop_on_error": false, "cells": []string{
		"print('first')",
		"display({'image/png': 5}, raw=True)",
		"display({'image/png': 'no base64!'}, raw=True)",
		"x = []\nfor _ in range(900): x = [x]\ndisplay({'application/json': x}, raw=True)",
		"import sys\nsys.set_int_max_str_digits(0)\ndisplay({'application/json': 10**5000}, raw=True)",
		"k = get_ipython().kernel\nk.session.send(k.iopub_socket, 'stream', {}, parent=k.get_parent())",
		"k.session.send(k.iopub_socket, 'error', {'ename': 5}, parent=k.get_parent())",
		"k.iopub_socket.send_multipart([b'garbage'])\nk.iopub_socket.send_multipart([b'<IDS|MSG>', b'x'])",
		"print('\\ud800', b'\\xff\\xfe'.decode('utf-8', 'surrogateescape'))",
		"import os\n_ = os.write(1, b'raw \\xff\\n')",
		"class E(Exception):\n    def __str__(self): raise ValueError('within')\nraise E",
		"raise ValueError('a\\ud800' + 'y' * 100)",
		"print('NUL \\0, \\x1b[31mred\\x1b[0m')\nprint('over\\rwritten, a\\bb')",
		"print('last')",
	}})
	require.Equal(t, "error", r.Status)
	for _, text := range []string{"first\n", "\ufffd", "raw ", "NUL , red\n", "written, b\n", "last\n"} {
		require.Contains(t, r.Text, text)
	}
	require.NotContains(t, r.Text, "\x1b")
	reasons := ""
	for _, s := range r.Skipped {
		reasons += s.Path + ": " + s.Reason + "\n"
	}
	for _, cell := range []string{"cell 1", "cell 2", "cell 3", "cell 5"} {
		require.Contains(t, reasons, cell)
	}
	require.Less(t, len(r.Error.Message), 1<<20)
}

// TestEnvironmentIsTheKernels: nothing of a request's variables is obeyed by a
// process that is more than the user.
func TestEnvironmentIsTheKernels(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{
		"code": "print(open('/tmp/p').read() if __import__('os').path.exists('/tmp/p') else 'nothing')",
		"env": map[string]string{
			"PYTHONWARNINGS": "all:0:antigravity.x:0:0",
			"BROWSER":        "/bin/sh -c 'id > /tmp/p; chmod 666 /tmp/p' #%s",
		},
	})
	require.NotContains(t, r.Text, "uid=0")
	require.Regexp(t, `nothing|uid=\d+\(sandbox\)`, r.Text)
}

// TestForgedReplies end the run, and are no failure of ours.
func TestForgedReplies(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"{}", "{'status': 'error', 'traceback': 5}", "[1]"} {
		r := shared.Execute(t, map[string]any{"timeout": 4, "code": `print('before', flush=True)
k = get_ipython().kernel
parent = k.get_parent()
k.session.send(k.iopub_socket, 'execute_input', {'execution_count': 'x' * 1_000_000, 'code': ''}, parent=parent)
send = k.session.send
def forge(stream, message, *args, **kw):
    if message == 'execute_reply':
        args = (` + content + `,) + args[1:]
    return send(stream, message, *args, **kw)
k.session.send = forge
`})
		require.Contains(t, r.Text, "before")
		require.Contains(t, []string{"ok", "error", "killed", "timeout"}, r.Status)
	}
}

// TestOutputLimitCountsEverything that is kept or passed on.
func TestOutputLimitCountsEverything(t *testing.T) {
	t.Parallel()
	for desc, code := range map[string]string{
		"the name of a media type":  "display({'x' * 20_000_000: ''}, raw=True)",
		"the id of a display":       "h = display(1, display_id='x' * 20_000_000)\nh.update(2)",
		"an update of many outputs": "for _ in range(19):\n    display('x', display_id='a')\nfrom IPython.display import update_display\nupdate_display('y' * 7_000_000, display_id='a')",
		"a text that is no stream's": `k = get_ipython().kernel
k.session.send(k.iopub_socket, 'display_data', {'text': '', 'data': {'text/plain': 'x' * 70_000_000}, 'metadata': {}}, parent=k.get_parent())`,
		"the state of widgets": `from comm import create_comm
for i in range(20):
    create_comm(target_name='x', data={'state': {'_model_name': 'a', 'a': 'x' * 1_000_000}})`,
		"outputs that are cleared again": "from IPython.display import clear_output\nwhile True:\n    print('x' * 10_000)\n    clear_output()",
	} {
		t.Run(desc, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, map[string]any{"code": code, "timeout": 60})
			require.Equal(t, "output_limit", r.Status, r.Text)
			require.True(t, r.Truncated)
		})
	}
}

func TestManyLines(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"timeout": 60, "cells": []string{
		"import sys\nfor i in range(10_000):\n    sys.stdout.write(f'{i}\\n')\n    sys.stdout.flush()\nprint('hi')",
		"print('\\n' * 7_000_000, end='')",
	}})
	require.Equal(t, "ok", r.Status, r.Hint)
	lines := strings.Split(r.Outputs[0].Text, "\n")
	require.Len(t, lines, 10_002)
	require.Equal(t, "hi", lines[10_000])
	require.Len(t, r.Outputs[1].Text, 7_000_000, "newlines are the longest text in a notebook")
}

// TestManyFiles: what is not passed back is reported.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"timeout": 60, "code": `import os
try:
    for i in range(10**6):
        open(f"f{i}", "w").close()
except OSError as e:
    print(e.strerror)
`})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Contains(t, r.Text, "No space left on device")
	require.Len(t, r.Files, 200)
	require.NotEmpty(t, r.Skipped)
	require.Less(t, len(r.Skipped), 200)
}

// TestForkBomb leaves the limit of processes to the sandbox, and the reply to us.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"timeout": 3, "code": "import os\nprint('before', flush=True)\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"})
	require.Contains(t, []string{"timeout", "out_of_memory"}, r.Status)
	require.Contains(t, r.Text, "before\n")
}
