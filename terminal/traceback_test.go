package terminal_test

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"notebox/terminal"
	"notebox/terminal/terminaltest"
)

func TestTraceback(t *testing.T) {
	const text = "-----------------------\nZeroDivisionError   Traceback (most recent call last)\nCell In[1], line 2\n      1 x = 0\n----> 2 1/x\n\nZeroDivisionError: division by zero"
	got := terminal.Traceback(text + "\n")
	require.Equal(t, text, ansi.Strip(got))
	require.Contains(t, got, terminal.Red+"----> 2 1/x"+terminal.Plain)
	require.Contains(t, got, terminal.Red+"ZeroDivisionError: division by zero"+terminal.Plain)
	require.Contains(t, got, terminal.Cyan+"Cell In[1], line 2"+terminal.Plain)
	require.Contains(t, got, "\n      1 x = 0\n")
	for _, text := range terminaltest.Hostile {
		terminaltest.RequireRendered(t, terminal.Traceback(text))
	}
}
