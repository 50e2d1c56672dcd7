package languages

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// TestImageBuild: the program builds an image by itself, in an empty folder, from what the
// daemon has of earlier builds, and code runs in it; nothing of this host is in it.
func TestImageBuild(t *testing.T) {
	program, err := starter.Notebox()
	require.NoError(t, err)
	const ref = "notebox-test/image-build:bash"
	c := exec.Command(program, "image", "build", "--tag", ref, "bash")
	c.Dir = t.TempDir()
	var progress strings.Builder
	c.Stderr = &progress
	out, err := c.Output()
	require.NoError(t, err, progress.String())
	t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", ref).Run() })
	require.Equal(t, ref+"\n", string(out))
	require.Contains(t, progress.String(), ref+": [4/4] RUN sh /media/finish.sh\n")
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)

	out, err = exec.Command("docker", "run", "--rm", "--network", "none", "--entrypoint", "bash", ref, "-c", "echo $((6*7)); test -x /opt/notebox/supervisor").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "42\n")
	out, err = exec.Command("../../../scripts/image-check.sh", ref).CombinedOutput()
	require.NoError(t, err, string(out))
}
