package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/console"
)

func TestExitStatuses(t *testing.T) {
	require.NoError(t, exitOf(nil))
	var exit exitError
	require.ErrorAs(t, exitOf(console.ErrInterrupted), &exit)
	require.Equal(t, exitInterrupted, exit.status)
	require.EqualError(t, exitOf(errors.New("no\x1b[2J")), "no")
}
