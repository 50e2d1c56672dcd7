package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// created returns how many containers a service has had made since then.
func created(t *testing.T, id string, since time.Time) int {
	t.Helper()
	out, err := exec.Command("docker", "events", "--filter", "label=notebox.service="+id, "--filter", "event=create",
		"--since", fmt.Sprint(since.Unix()-1), "--until", fmt.Sprint(time.Now().Unix()+1)).Output()
	require.NoError(t, err)
	return strings.Count(string(out), "\n")
}

// TestSecondServiceInOneStateFolder is refused.
func TestSecondServiceInOneStateFolder(t *testing.T) {
	t.Parallel()
	_, _, err := start(suite.folder)
	require.ErrorContains(t, err, "another notebox uses the state folder")
}
