package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner/cells"
	"notebox/server"
)

func TestIsolationAfter(t *testing.T) {
	missing := &cells.NoCells{Wall: "proc", Why: errors.New("/opt/notebox/walls.py"), Do: "mount it"}
	for _, c := range []struct {
		desc  string
		probe error
		want  server.Isolation
	}{
		{"all walls are there", nil, server.Isolation{Kind: isolationCell}},
		{"one is missing", fmt.Errorf("probe: %w", missing), server.Isolation{Kind: isolationContainer, MissingWall: "proc", Remedy: "mount it"}},
		{"the engine does not close", errors.New("no"), server.Isolation{Kind: isolationContainer}},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.want, isolationAfter(c.probe)) })
	}
}
