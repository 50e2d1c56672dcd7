package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// count returns how many containers a service has on the daemon.
func count(t *testing.T, id string) int {
	t.Helper()
	out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=notebox.service="+id).Output()
	require.NoError(t, err)
	return len(strings.Fields(string(out)))
}

// created returns how many containers a service has had made since then.
func created(t *testing.T, id string, since time.Time) int {
	t.Helper()
	out, err := exec.Command("docker", "events", "--filter", "label=notebox.service="+id, "--filter", "event=create",
		"--since", fmt.Sprint(since.Unix()-1), "--until", fmt.Sprint(time.Now().Unix()+1)).Output()
	require.NoError(t, err)
	return strings.Count(string(out), "\n")
}

// process is the program as a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// TestSecondServiceInOneStateFolder is refused.
func TestSecondServiceInOneStateFolder(t *testing.T) {
	t.Parallel()
	_, _, err := start(suite.folder)
	require.ErrorContains(t, err, "another notebox uses the state folder")
}
