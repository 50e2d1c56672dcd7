package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostWarnings(t *testing.T) {
	for _, c := range []struct {
		desc, files, cores string
		want               []string
	}{
		{"as systemd sets it", "9223372036854775807", "|/usr/share/apport/apport %p", nil},
		{"the kernel's own number of files", "2466183", "core", []string{"fs.file-max=9223372036854775807"}},
		{"a socket for cores", "9223372036854775807", "@/run/cores.sock", []string{"kernel.core_pattern"}},
		{"another machine", "", "", nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			proc := t.TempDir()
			for name, content := range map[string]string{"sys/fs/file-max": c.files, "sys/kernel/core_pattern": c.cores} {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(proc, name), []byte(content+"\n"), 0o600))
			}
			got := hostWarnings(proc)
			require.Len(t, got, len(c.want))
			for i, want := range c.want {
				require.Contains(t, got[i], want)
			}
		})
	}
}
