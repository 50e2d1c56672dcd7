package doctor_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/doctor"
	"notebox/storage"
)

func TestStorage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "kept", "empty"), 0o700))
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead.Close()
	for _, c := range []struct {
		desc, url     string
		level         doctor.Level
		message, mend string
	}{
		{"a folder", "file://" + folder, doctor.OK, "written to file://" + folder, ""},
		{"a folder by another name", "file://" + folder + "//kept/", doctor.OK, "removed", ""},
		{"one that is not there", "file://" + folder + "/new/a/b", doctor.OK, "removed", ""},
		{"no folder", "file://" + file, doctor.Wrong, "file", "--storage"},
		{"a cloud that is down", "s3://bucket?region=x&path_style=true&endpoint=http://" + dead.Addr().String(), doctor.Wrong, "", "AWS_ACCESS_KEY_ID"},
		{"no store", "nonsense", doctor.Wrong, "nonsense", "file:///folder"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			variables := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
			check, _ := doctor.Storage(storage.Options{URL: c.url, Getenv: func(name string) string { return variables[name] }})
			found := lines(t, check)["storage"]
			require.Equal(t, c.level, found.Level, found)
			require.Contains(t, found.Message, c.message)
			require.Contains(t, found.Mend, c.mend)
		})
	}
	t.Cleanup(func() {
		left, err := filepath.Glob(folder + "/doctor/*")
		require.NoError(t, err)
		require.Empty(t, left)
		require.NoDirExists(t, folder+"/new", "the service makes it")
		require.DirExists(t, folder+"/kept/empty", "it was there")
	})
}

func TestState(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, doctor.OK, lines(t, doctor.State(folder))["state"].Level)
	require.Contains(t, lines(t, doctor.State(folder+"/a/b"))["state"].Message, "not there yet")
	require.NoDirExists(t, folder+"/a")
	require.Equal(t, doctor.Wrong, lines(t, doctor.State(file))["state"].Level)
	require.Equal(t, doctor.Wrong, lines(t, doctor.State(file+"/a"))["state"].Level)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// TestStateOfRelativeFolder: a folder is there by whatever name.
func TestStateOfRelativeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("state", 0o700))
	require.Contains(t, lines(t, doctor.State("./state/"))["state"].Message, "can be written")
	require.Contains(t, lines(t, doctor.State("other"))["state"].Message, "not there yet")
}

func TestPort(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	go func() {
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "220 another\r\n")
			c.Close()
		}
	}()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="notebox"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer own.Close()
	serves := func(text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	for _, c := range []struct {
		desc, address string
		refused       error
		level         doctor.Level
		message       string
	}{
		{"free", "127.0.0.1:0", nil, doctor.OK, "is free"},
		{"a notebox's", own.Listener.Addr().String(), nil, doctor.OK, "a notebox answers"},
		{"a notebox's that everybody may use", serves(`{"environments": [{"name": "jupyter", "kernel": "python3"}], "limits": {"cpus": 1}}`), nil, doctor.OK, "a notebox answers"},
		{"a page's", serves("<title>nginx</title>"), nil, doctor.Wrong, "another program answers"},
		{"another API's", serves(`{"environments": [{"name": "production"}]}`), nil, doctor.Wrong, "another program answers"},
		{"another program's", other.Addr().String(), nil, doctor.Wrong, "another program answers"},
		{"not this machine's", "192.0.2.1:0", nil, doctor.Wrong, "192.0.2.1"},
		{"refused", "0.0.0.0:8080", errors.New("only loopback"), doctor.Wrong, "only loopback"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			found := lines(t, doctor.Port(c.address, c.refused))["port"]
			require.Equal(t, c.level, found.Level, found)
			require.Contains(t, found.Message, c.message)
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	line := access.NamedEntry("alice", access.Limits{}, access.SecretOf(access.NewKey())).String() + "\n"
	for _, c := range []struct {
		desc, path       string
		everybody, first bool
		level            doctor.Level
		message          string
	}{
		{"none", "", false, false, doctor.OK, "only this machine"},
		{"none, and everybody", "", true, false, doctor.Warning, "whoever reaches"},
		{"one", write("good", line, 0o600), false, false, doctor.OK, "good: 1"},
		{"one that others may read", write("open", line, 0o644), false, false, doctor.Warning, "others may read"},
		{"not there", folder + "/none", false, false, doctor.Wrong, "nobody can call: API keys: " + folder + "/none: no such file"},
		{"empty", write("empty", "\n", 0o600), false, false, doctor.Wrong, "key"},
		{"not there, and serve makes it", folder + "/none", false, true, doctor.Warning, "by --first-key notebox serve starts"},
		{"empty, and serve fills it", write("new", "", 0o600), false, true, doctor.Warning, "by --first-key"},
		{"a comment, and serve fills it", write("comment", "# none yet\n", 0o600), false, true, doctor.Warning, "by --first-key"},
		{"one that is there, and serve would", write("old", line, 0o600), false, true, doctor.OK, "old: 1"},
		{"not there, nor its folder", folder + "/a/b", false, true, doctor.Wrong, "there is no folder"},
		{"no line of it", write("bad", "alice sha256:x\n", 0o600), false, false, doctor.Wrong, "line 1"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			found := lines(t, doctor.Keys(c.path, c.everybody, c.first))["keys"]
			require.Equal(t, c.level, found.Level, found)
			require.Contains(t, found.Message, c.message)
		})
	}
}

func TestDiskAndWarnings(t *testing.T) {
	e := daemon(t, func(map[string]any) {})
	found := lines(t, doctor.Disk(e, doctor.Place{Of: "state", Folder: t.TempDir() + "/new"}), doctor.Settings(nil, []string{"a doubt"}), doctor.Kernel([]string{"file-max"}))
	require.Regexp(t, `^\d+(\.\d)? [GM]iB free for state \(.*the daemon's images are on another machine`, found["disk"].Message)
	require.Equal(t, doctor.Warning, found["settings"].Level)
	require.Equal(t, "file-max", found["kernel"].Message)
	require.Equal(t, doctor.Wrong, lines(t, doctor.Settings([]error{errors.New("--pids is out of range")}, nil))["settings"].Level)
}
