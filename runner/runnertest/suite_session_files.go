package runnertest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

func (s *openedSession) write(t *testing.T, path, content string) runner.FileInfo {
	t.Helper()
	info, err := s.Write(t.Context(), path, strings.NewReader(content))
	require.NoError(t, err)
	require.EqualValues(t, len(content), info.Size)
	require.Equal(t, runner.FileRegular, info.Kind)
	return info
}

func (s *openedSession) read(t *testing.T, path string) string {
	t.Helper()
	info, content, err := s.Read(t.Context(), path)
	require.NoError(t, err)
	defer content.Close()
	data, err := io.ReadAll(content)
	require.NoError(t, err)
	require.EqualValues(t, len(data), info.Size)
	return string(data)
}

func (s *openedSession) list(t *testing.T, path string, recursive bool) (out []string) {
	t.Helper()
	files, more, err := s.List(t.Context(), path, recursive)
	require.NoError(t, err)
	require.False(t, more)
	for _, f := range files {
		out = append(out, fmt.Sprintf("%s %s %d", f.Kind, f.Path, f.Size))
	}
	return out
}

func testSessionInputs(t *testing.T, h SessionHarness) {
	s := h.open(t, func(spec *runner.SessionSpec) {
		spec.Inputs = []runner.Input{TextInput("in.txt", "first"), TextInput("folder/deep.txt", "deep")}
	})
	s.run(t, CellRead).printed(t, "first\n")
	require.Equal(t, "deep", s.read(t, "folder/deep.txt"))
	spec := s.spec(CellRead)
	spec.Inputs = []runner.Input{TextInput("in.txt", "second")}
	r := s.do(t, t.Context(), spec, nil)
	r.printed(t, "second\n")
	require.Empty(t, r.sink.Files(), "what was brought is not new")
}

func testSessionFiles(t *testing.T, h SessionHarness) {
	s := h.open(t)
	require.Empty(t, s.list(t, "", true))
	info := s.write(t, "/mnt/data/a/./b//one.txt", "one")
	require.Equal(t, "a/b/one.txt", info.Path)
	require.WithinDuration(t, time.Now(), info.Modified, patience)
	s.write(t, "./two.txt", "two")
	s.write(t, "two.txt", "")
	s.write(t, "two.txt", "two again")
	big := strings.Repeat("0123456789abcdef", 1<<16)
	s.write(t, "big", big)
	require.Equal(t, []string{"directory a 0", "file big 1048576", "file two.txt 9"}, s.list(t, "/mnt/data", false))
	require.Equal(t, []string{"directory a/b 0", "file a/b/one.txt 3"}, s.list(t, "a/", true))
	require.Equal(t, []string{"directory a 0", "directory a/b 0", "file a/b/one.txt 3", "file big 1048576", "file two.txt 9"}, s.list(t, "", true))

	running := s.start(t, t.Context(), s.spec(CellSleep))
	require.True(t, big == s.read(t, "big"), "while code runs")
	require.Equal(t, "two again", s.read(t, "two.txt"))
	moved, err := s.Move(t.Context(), "two.txt", "new/in.txt", false)
	require.NoError(t, err)
	require.Equal(t, "new/in.txt", moved.Path)
	s.write(t, "in.txt", "old")
	moved, err = s.Move(t.Context(), "new/in.txt", "in.txt", true)
	require.NoError(t, err)
	require.EqualValues(t, 9, moved.Size)
	_, err = s.Move(t.Context(), "a", "c/d", false)
	require.NoError(t, err)
	require.Equal(t, "one", s.read(t, "c/d/b/one.txt"))
	require.NoError(t, s.Delete(t.Context(), "c"))
	require.NoError(t, s.Delete(t.Context(), "new"))
	require.NoError(t, s.Delete(t.Context(), "big"))
	require.Equal(t, []string{"file in.txt 9"}, s.list(t, "", true))
	require.NoError(t, s.Interrupt(t.Context()))
	await(t, running).raised(t, "KeyboardInterrupt")
	s.run(t, CellRead).printed(t, "two again\n")
}

func testSessionRefusals(t *testing.T, h SessionHarness) {
	s := h.open(t)
	s.write(t, "file", "content")
	s.write(t, "folder/file", "content")
	s.run(t, CellSpecialFiles).is(t, runner.StatusOK, false)
	list := func(path string) error { _, _, err := s.List(t.Context(), path, false); return err }
	read := func(path string) error {
		_, content, err := s.Read(t.Context(), path)
		if err == nil {
			content.Close()
		}
		return err
	}
	write := func(path string) error { _, err := s.Write(t.Context(), path, strings.NewReader("x")); return err }
	move := func(from, to string) error { _, err := s.Move(t.Context(), from, to, false); return err }
	for _, c := range []struct {
		desc string
		err  error
		code runner.FileCode
	}{
		{"list of nothing", list("none"), runner.FileNotFound},
		{"list of a file", list("file"), runner.FileNotPlain},
		{"list of another folder", list("/etc"), runner.FileRefused},
		{"read of nothing", read("none"), runner.FileNotFound},
		{"read of a folder", read("folder"), runner.FileNotPlain},
		{"read of a link", read("link"), runner.FileNotPlain},
		{"read of a FIFO", read("fifo"), runner.FileNotPlain},
		{"read of all", read(""), runner.FileRefused},
		{"read above", read("../etc/passwd"), runner.FileRefused},
		{"read above, in the middle", read("folder/../../x"), runner.FileRefused},
		{"read of another file", read("/etc/passwd"), runner.FileRefused},
		{"read of one beside", read("/mnt/database"), runner.FileRefused},
		{"a zero byte", read("a\x00b"), runner.FileRefused},
		{"not UTF-8", read("a\xff"), runner.FileRefused},
		{"a long name", write(strings.Repeat("a", 256)), runner.FileRefused},
		{"a long path", write(strings.Repeat("aaaa/", 1000)), runner.FileRefused},
		{"write on a folder", write("folder"), runner.FileNotPlain},
		{"write below a file", write("file/x"), runner.FileNotPlain},
		{"delete of nothing", s.Delete(t.Context(), "none"), runner.FileNotFound},
		{"delete of all", s.Delete(t.Context(), "/mnt/data"), runner.FileRefused},
		{"move of nothing", move("none", "x"), runner.FileNotFound},
		{"move onto a file", move("file", "folder/file"), runner.FileExists},
		{"move away", move("file", "/etc/x"), runner.FileRefused},
		{"move into itself", move("folder", "folder/in"), runner.FileRefused},
	} {
		refusal := (*runner.FileError)(nil)
		require.ErrorAs(t, c.err, &refusal, c.desc)
		require.Equal(t, c.code, refusal.Code, "%s: %s", c.desc, refusal.Message)
		require.NotEmpty(t, refusal.Message, c.desc)
	}
	for _, to := range []string{"folder/file", "file/in"} {
		refusal := (*runner.FileError)(nil)
		require.ErrorAs(t, move("file", to), &refusal)
		require.Equal(t, to, refusal.Path, "it is the new path that is refused")
	}
	_, err := s.Write(t.Context(), "huge", io.LimitReader(zeros{}, h.Limits.DataSize+1))
	refusal := (*runner.FileError)(nil)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, runner.FileNoRoom, refusal.Code)
	failure := fmt.Errorf("the client is gone")
	_, err = s.Write(t.Context(), "half", io.MultiReader(strings.NewReader("half"), failingReader{failure}))
	require.ErrorIs(t, err, failure)
	require.Eventually(t, func() bool { return read("half") != nil && read("huge") != nil }, patience, 50*time.Millisecond, "nothing is left")
	require.NotContains(t, s.list(t, "", false), "half")
	require.Equal(t, "content", s.read(t, "file"), "the session goes on")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func testSessionNewFiles(t *testing.T, h SessionHarness) {
	s := h.open(t)
	s.write(t, "mine", "not new")
	three := map[string]string{"a": "0123456789", "b": "0123456789", "c": "0123456789"}
	require.Equal(t, three, s.run(t, CellThreeFiles).sink.Files())
	require.Empty(t, s.run(t, CellHello).sink.Files())
	r := s.run(t, CellSpecialFiles)
	require.Equal(t, map[string]string{"kept": "kept"}, r.sink.Files())
	require.Len(t, r.out.Skipped, 2)
}

func testSessionFilesAtOnce(t *testing.T, h SessionHarness) {
	s := h.open(t)
	running := s.start(t, t.Context(), s.spec(CellSleep))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			path, content := fmt.Sprintf("folder/%d", i), strings.Repeat(fmt.Sprint(i), 100_000)
			if _, err := s.Write(t.Context(), path, strings.NewReader(content)); err != nil {
				t.Error(err)
				return
			}
			_, reader, err := s.Read(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer reader.Close()
			if data, err := io.ReadAll(reader); err != nil || string(data) != content {
				t.Errorf("%s: %d bytes, %v", path, len(data), err)
			}
		})
	}
	all.Wait()
	require.Len(t, s.list(t, "folder", false), 20)
	require.NoError(t, s.Interrupt(t.Context()))
	await(t, running).raised(t, "KeyboardInterrupt")
}
