package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCleanupRefuses: no folder is removed that notebox run has not made.
func TestCleanupRefuses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ours := filepath.Join(os.TempDir(), "notebox-run-1")
	require.NoError(t, os.MkdirAll(filepath.Join(ours, "notebox-run-2"), 0o700))
	link := filepath.Join(os.TempDir(), "notebox-run-3")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	require.NoError(t, isRuns(ours))
	for _, folder := range []string{".", "/", os.TempDir(), filepath.Join(ours, "notebox-run-2"), link, filepath.Join(os.TempDir(), "notebox-run-none"), t.TempDir()} {
		require.Error(t, isRuns(folder), folder)
	}
}
