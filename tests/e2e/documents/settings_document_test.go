package documents

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"notebox/tests/starter"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/settings.md")

var (
	// heading is the name of a group in a help.
	heading = regexp.MustCompile(`(?m)^\S.*$`)
	// flagInHelp is a flag's name and argument, its sentence, and its default.
	flagInHelp = regexp.MustCompile(`(?m)^  -(\S+)( .*)?\n    \t(.*?)(?: \(default:? "?(.*?)"?\))?$`)
)

// TestSettingsDocument holds the tables of docs/settings.md against the help.
func TestSettingsDocument(t *testing.T) {
	t.Parallel()
	const document, firstGroup = "../../../docs/settings.md", "\nWhat most people set\n"
	program, err := starter.Notebox()
	require.NoError(t, err)
	raw, err := os.ReadFile(document)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(raw), "\n## ")
	want, flags := head, 0
	for _, command := range []string{"serve", "chat", "discord"} {
		help, err := exec.Command(program, command, "--help").CombinedOutput()
		require.NoError(t, err)
		_, groups, found := strings.Cut(string(help), firstGroup)
		require.True(t, found, "%s", help)
		groups = heading.ReplaceAllString(firstGroup+strings.TrimRight(groups, "\n"), "### $0\n\n| flag | default | what it does |\n| --- | --- | --- |")
		flags += len(flagInHelp.FindAllString(groups, -1))
		groups = strings.ReplaceAll(flagInHelp.ReplaceAllString(groups, "| `--$1`$2 | $4 | $3 |"), "*", `\*`)
		want += fmt.Sprintf("\n## notebox %s\n%s\n", command, groups)
	}
	require.Greater(t, flags, 100)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(raw))
}
