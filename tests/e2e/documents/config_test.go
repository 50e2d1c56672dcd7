package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"notebox/tests/starter"

	"github.com/stretchr/testify/require"
)

// TestConfigFile: a flag counts from where it is set first, and what is wrong with the file
// is said with its line. --log-format tells its value, as there is no format of these names.
func TestConfigFile(t *testing.T) {
	t.Parallel()
	program, err := starter.Notebox()
	require.NoError(t, err)
	for _, c := range []struct {
		desc, file string
		open       bool // others may read the file
		dotenv     string
		env        []string
		flags      []string
		want       string
	}{
		{desc: "the file alone", file: "log-format = of-the-file", want: `--log-format is "of-the-file"`},
		{desc: ".env comes first", file: "log-format = of-the-file", dotenv: "NOTEBOX_LOG_FORMAT=of-dotenv", want: `--log-format is "of-dotenv"`},
		{desc: "a variable comes first", file: "log-format = of-the-file", dotenv: "NOTEBOX_LOG_FORMAT=of-dotenv", env: []string{"NOTEBOX_LOG_FORMAT=of-a-variable"}, want: `--log-format is "of-a-variable"`},
		{desc: "the command line comes first", file: "log-format = of-the-file", dotenv: "NOTEBOX_LOG_FORMAT=of-dotenv", env: []string{"NOTEBOX_LOG_FORMAT=of-a-variable"}, flags: []string{"--log-format", "given"}, want: `--log-format is "given"`},
		{desc: "remarks, quotes, an empty value", file: "# formats\nlog-format = 'in quotes' # one\nmodel =\n", want: `--log-format is "in quotes"`},
		{desc: "a list", file: "allow-network = a.test, b.test\ndependencies-hosts = *.test:443", want: "--dependencies-hosts: "},
		{desc: "a name that no flag has", file: "log-format = json\n\nmax-bdy = 1", want: `--config notebox.conf: line 3: config file flag "max-bdy" not defined`},
		{desc: "a variable of another program", file: "OPENAI_API_KEY=secret", want: `--config notebox.conf: line 1: config file flag "OPENAI_API_KEY" not defined`},
		{desc: "no setting", file: "log-format json", want: "--config notebox.conf: line 1 is not NAME=value"},
		{desc: "a value that is none", file: "log-format = json\nmax-body = much", want: `--config notebox.conf: line 2: error setting flag "max-body"`},
		{desc: "no file", want: "--config notebox.conf: open notebox.conf: no such file"},
		{desc: "the file's name in a variable", file: "log-format = of-the-file", env: []string{"NOTEBOX_CONFIG=notebox.conf"}, flags: []string{}, want: `--log-format is "of-the-file"`},
		{desc: "the file's name in .env", file: "log-format = of-the-file", dotenv: "NOTEBOX_CONFIG=notebox.conf", flags: []string{}, want: `--log-format is "of-the-file"`},
		{desc: "a password that others may read", file: "model-base-url = https://me:secret@models.test/v1", open: true, want: "--config notebox.conf: line 1: the URL of model-base-url has credentials in it, and others may read the file: chmod 600 it"},
		{desc: "a password that nobody else may read", file: "model-base-url = https://me:secret@models.test/v1\nlog-format = of-the-file", want: `--log-format is "of-the-file"`},
		{desc: "no secret in a file that others may read", file: "log-format = of-the-file", open: true, want: `--log-format is "of-the-file"`},
		{desc: ".env has a line that is none", dotenv: "log", flags: []string{}, want: ".env: line 1 is not NAME=value"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			folder := t.TempDir()
			write := func(name, text string, mode os.FileMode) {
				if text != "" {
					require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), mode))
				}
			}
			mode := os.FileMode(0o600)
			if c.open {
				mode = 0o644
			}
			write("notebox.conf", c.file, mode)
			write(".env", c.dotenv, 0o600)
			args := []string{"serve", "--config", "notebox.conf"}
			if len(c.flags) > 0 {
				args = append(args, c.flags...)
			} else if c.flags != nil {
				args = args[:1]
			}
			cmd := exec.Command(program, args...)
			cmd.Dir, cmd.Env = folder, append([]string{"HOME=" + folder}, c.env...)
			said, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(said), c.want)
			require.NotContains(t, string(said), "secret")
		})
	}
}
