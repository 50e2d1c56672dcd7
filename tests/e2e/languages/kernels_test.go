package languages

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// rightsOfAll prints of each process of a sandbox its uid, its effective capabilities and
// whether it can gain any, and its program.
const rightsOfAll = `for p in /proc/[0-9]*; do
  [ -r $p/status ] || continue
  echo "$(awk '/^Uid:/ { u = $2 } /^CapEff:/ { c = $2 } /^NoNewPrivs:/ { n = $2 } END { print u, c, n }' $p/status) $(tr '\0\n' '  ' <$p/cmdline | cut -c1-60)"
done`

// TestKernelsHaveNoRights looks at the processes of a sandbox of every language: the
// harness and the container's init are root's, with two capabilities at most; everything
// else, kernels and what stands before them, is the user's and has none.
func TestKernelsHaveNoRights(t *testing.T) {
	t.Parallel()
	const setIDs = "00000000000000c0" // CAP_SETGID and CAP_SETUID
	all, err := environments.Load("")
	require.NoError(t, err)
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			session := sessionIn(t, e.Language, map[string]any{})
			r := shared.Execute(t, map[string]any{"session": session, "language": "bash", "code": rightsOfAll})
			require.Equal(t, "ok", r.Status, r.Text)
			processes, roots := map[string]int{}, 0 // by user
			for line := range strings.Lines(r.Outputs[0].Text) {
				rights := strings.Fields(line)
				require.Equal(t, "1", rights[2], line)
				if rights[0] == "0" {
					roots++
					require.Contains(t, []string{"0000000000000000", setIDs}, rights[1], line)
					continue
				}
				require.Equal(t, "0000000000000000", rights[1], line)
				processes[rights[0]]++
			}
			require.LessOrEqual(t, roots, 2, r.Text)
			users := slices.Sorted(maps.Keys(processes))
			require.Len(t, users, 2, "code's, and the harness's own beside it: %s", r.Text)
			require.Equal(t, 1, processes[users[1]], "the guard of sockets: %s", r.Text)
		})
	}
}
