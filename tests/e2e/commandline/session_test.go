package commandline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSession goes through the life of a session.
func TestSession(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"data.csv": "a\n41\n", "more.txt": "more"})
	session := func(args ...string) ended {
		t.Helper()
		return call{args: append([]string{"session"}, args...), env: []string{"NOTEBOX_URL=" + shared.URL}, dir: folder}.run(t)
	}
	opened := session("open", "--file", "data.csv", "--ttl", "10m")
	require.Zero(t, opened.exit, opened.said)
	id := strings.TrimSpace(opened.out)
	require.Regexp(t, "^ses_", id)
	list := session("list")
	require.Regexp(t, `(?m)^`+id+` +python +idle +\d{4}-`, list.out)
	require.Equal(t, ended{}, session("run", id, "-c", "x = int(open('data.csv').read().split()[1])"))
	require.Equal(t, ended{out: "42\n"}, session("run", id, "-c", "x + 1"))
	require.Equal(t, ended{out: "42\n"}, call{args: []string{"run", "--session", id, "-c", "x + 1"}, env: []string{"NOTEBOX_URL=" + shared.URL}}.run(t))
	require.Equal(t, ended{}, session("files", id, "sub/there.txt", "--put", "more.txt"))
	require.Equal(t, ended{out: "more"}, session("files", id, "sub/there.txt"))
	require.Regexp(t, `(?m)^ *5B .* data.csv$`, session("files", id).out)
	require.Equal(t, 2, session("files", id, "none.txt").exit)
	require.Equal(t, ended{}, session("close", id))
	require.NotContains(t, session("list").out, id)
	gone := session("run", id, "-c", "1")
	require.Equal(t, 2, gone.exit, gone.said)
	require.Equal(t, 2, session("close").exit)
	require.Equal(t, 2, session("nonsense").exit)
}
