package docker

import (
	"log/slog"
	"testing"
)

// testLog writes the log of a test that fails.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
