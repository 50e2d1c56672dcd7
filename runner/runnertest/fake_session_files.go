package runnertest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
	"time"

	"notebox/runner"
)

// fakeFile is a file of a session. Its folders are there as long as it is.
type fakeFile struct {
	content  string
	modified time.Time
	special  string // why it cannot be read; "" for a regular file
}

func (f fakeFile) info(name string) runner.FileInfo {
	kind := runner.FileRegular
	switch f.special {
	case "":
	case "symbolic link":
		kind = runner.FileLink
	default:
		kind = runner.FileOther
	}
	return runner.FileInfo{Path: name, Kind: kind, Size: int64(len(f.content)), Modified: f.modified}
}

// lend gives a run's kernel what the session has, with its inputs put into it. It
// returns the files as they are then, and whether the kernel is another than the
// last run's.
func (s *fakeSession) lend(k *Kernel, inputs map[string]string) (before map[string]string, lost bool) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	for name, content := range inputs {
		s.files[name] = fakeFile{content: content, modified: s.host.Now()}
	}
	before = map[string]string{}
	for name, f := range s.files {
		before[name] = f.content
		if f.special != "" {
			k.skipped[name] = f.special
		}
	}
	k.Files, k.Vars = maps.Clone(before), s.vars
	lost, s.lost, s.kernel = s.lost, false, k
	if s.gone != nil {
		k.end(errCancelled)
	}
	return before, lost
}

// takeBack puts what the run changed into the session, and starts another kernel
// where its own is no more.
func (s *fakeSession) takeBack(k *Kernel, before map[string]string) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	for name, content := range k.Files {
		if old, ok := before[name]; !ok || old != content {
			s.files[name] = fakeFile{content: content, modified: s.host.Now(), special: k.skipped[name]}
		}
	}
	for name := range before {
		if _, ok := k.Files[name]; !ok {
			delete(s.files, name)
		}
	}
	if s.kernel = nil; k.isDead() {
		s.vars = map[string]string{}
		s.restarts++
	}
}

// collect gives the sink what the run made or changed.
func (k *Kernel) collect(ctx context.Context, before map[string]string, l runner.Limits, out *runner.Outcome, events runner.Sink) {
	sent, size := 0, int64(0)
	for _, name := range sortedKeys(k.Files) {
		content := k.Files[name]
		if old, ok := before[name]; ok && old == content {
			continue
		}
		reason := k.skipped[name]
		switch {
		case reason != "":
		case sent >= l.Files:
			reason = fmt.Sprintf("more than %d files", l.Files)
		case size+int64(len(content)) > l.FileSize:
			reason = fmt.Sprintf("more than %d bytes in all files", l.FileSize)
		default:
			sent, size = sent+1, size+int64(len(content))
			if err := events.File(ctx, name, strings.NewReader(content)); err != nil {
				reason = err.Error()
			}
		}
		if reason != "" {
			out.Skipped = append(out.Skipped, runner.Skipped{Path: "/mnt/data/" + name, Reason: reason})
		}
	}
}

// fakePath is a path within /mnt/data in one form; "" is /mnt/data.
func fakePath(asked string) (string, error) {
	for part := range strings.SplitSeq(asked, "/") {
		if part == ".." || len(part) > 255 || strings.ContainsRune(part, 0) {
			return "", &runner.FileError{Code: runner.FileRefused, Path: asked, Message: "is no path within /mnt/data"}
		}
	}
	if strings.HasPrefix(asked, "/") {
		return "", &runner.FileError{Code: runner.FileRefused, Path: asked, Message: "is no path within /mnt/data"}
	}
	if clean := path.Clean(asked); clean != "." {
		return clean, nil
	}
	return "", nil
}

// look returns what is at a path; the host's lock is held.
func (s *fakeSession) look(name string) (runner.FileInfo, bool) {
	if f, ok := s.files[name]; ok {
		return f.info(name), true
	}
	folder := runner.FileInfo{Path: name, Kind: runner.FileFolder, Modified: s.created}
	for other := range s.files {
		if name == "" || strings.HasPrefix(other, name+"/") {
			return folder, true
		}
	}
	return folder, name == ""
}

// blocked is whether something on the way to a path is no folder; the host's lock is held.
func (s *fakeSession) blocked(name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if _, ok := s.files[folder]; ok {
			return true
		}
	}
	return false
}

// at begins a call of Files; where it returns no error the host's lock is held, and
// done ends the call.
func (s *fakeSession) at(asked string) (name string, done func(), err error) {
	ended, err := s.use()
	if err != nil {
		return "", nil, err
	}
	if name, err = fakePath(asked); err != nil {
		ended()
		return "", nil, err
	}
	s.host.mu.Lock()
	return name, func() { s.host.mu.Unlock(); ended() }, nil
}

func missing(asked string) error {
	return &runner.FileError{Code: runner.FileNotFound, Path: asked, Message: "there is no such file"}
}

func notPlain(asked string) error {
	return &runner.FileError{Code: runner.FileNotPlain, Path: asked, Message: "is not a regular file"}
}

// List implements runner.Files.
func (s *fakeSession) List(_ context.Context, asked string, recursive bool) ([]runner.FileInfo, bool, error) {
	folder, done, err := s.at(asked)
	if err != nil {
		return nil, false, err
	}
	defer done()
	switch info, ok := s.look(folder); {
	case !ok:
		return nil, false, missing(asked)
	case info.Kind != runner.FileFolder:
		return nil, false, notPlain(asked)
	}
	found := map[string]string{}
	for name := range s.files {
		below := name
		if folder != "" {
			var ok bool
			if below, ok = strings.CutPrefix(name, folder+"/"); !ok {
				continue
			}
		}
		parts := strings.Split(below, "/")
		for i := range parts {
			if i == 0 || recursive {
				found[path.Join(folder, strings.Join(parts[:i+1], "/"))] = ""
			}
		}
	}
	var out []runner.FileInfo
	for _, name := range sortedKeys(found) {
		if len(out) == runner.MaxListed {
			return out, true, nil
		}
		info, _ := s.look(name)
		out = append(out, info)
	}
	return out, false, nil
}

// Read implements runner.Files.
func (s *fakeSession) Read(_ context.Context, asked string) (runner.FileInfo, io.ReadCloser, error) {
	name, done, err := s.at(asked)
	if err != nil {
		return runner.FileInfo{}, nil, err
	}
	defer done()
	info, ok := s.look(name)
	switch {
	case !ok:
		return runner.FileInfo{}, nil, missing(asked)
	case info.Kind != runner.FileRegular:
		return runner.FileInfo{}, nil, notPlain(asked)
	}
	return info, io.NopCloser(strings.NewReader(s.files[name].content)), nil
}

// Write implements runner.Files. DataSize of the session's limits bounds all files.
func (s *fakeSession) Write(ctx context.Context, asked string, content io.Reader) (runner.FileInfo, error) {
	room := s.spec.Limits.DataSize
	if room == 0 {
		room = runner.DefaultLimits().DataSize
	}
	raw, err := io.ReadAll(io.LimitReader(content, room+1)) // nothing of it is there until it is whole
	if err != nil {
		return runner.FileInfo{}, err
	}
	name, done, err := s.at(asked)
	if err != nil {
		return runner.FileInfo{}, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return runner.FileInfo{}, err
	}
	if info, ok := s.look(name); s.blocked(name) || ok && info.Kind == runner.FileFolder {
		return runner.FileInfo{}, notPlain(asked)
	}
	used := int64(len(raw))
	for other, f := range s.files {
		if other != name {
			used += int64(len(f.content))
		}
	}
	if used > room {
		return runner.FileInfo{}, &runner.FileError{Code: runner.FileNoRoom, Path: asked, Message: "/mnt/data is full"}
	}
	s.files[name] = fakeFile{content: string(raw), modified: s.host.Now()}
	return s.files[name].info(name), nil
}

// Delete implements runner.Files.
func (s *fakeSession) Delete(_ context.Context, asked string) error {
	name, done, err := s.at(asked)
	if err != nil {
		return err
	}
	defer done()
	switch _, ok := s.look(name); {
	case name == "":
		return &runner.FileError{Code: runner.FileRefused, Path: asked, Message: "/mnt/data itself cannot be deleted"}
	case !ok:
		return missing(asked)
	}
	for other := range s.files {
		if other == name || strings.HasPrefix(other, name+"/") {
			delete(s.files, other)
		}
	}
	return nil
}

// Move implements runner.Files.
func (s *fakeSession) Move(_ context.Context, from, to string, overwrite bool) (runner.FileInfo, error) {
	target, err := fakePath(to)
	if err != nil {
		return runner.FileInfo{}, err
	}
	name, done, err := s.at(from)
	if err != nil {
		return runner.FileInfo{}, err
	}
	defer done()
	_, ok := s.look(name)
	there, taken := s.look(target)
	switch {
	case name == "", target == "", strings.HasPrefix(target, name+"/"):
		return runner.FileInfo{}, &runner.FileError{Code: runner.FileRefused, Path: to, Message: "a folder cannot be moved into itself"}
	case !ok:
		return runner.FileInfo{}, missing(from)
	case s.blocked(target):
		return runner.FileInfo{}, notPlain(to)
	case taken && target != name && (!overwrite || there.Kind == runner.FileFolder):
		return runner.FileInfo{}, &runner.FileError{Code: runner.FileExists, Path: to, Message: "there is one already"}
	}
	for other, f := range maps.Clone(s.files) {
		if below, ok := strings.CutPrefix(other, name); ok && (below == "" || below[0] == '/') {
			delete(s.files, other)
			s.files[target+below] = f
		}
	}
	info, _ := s.look(target)
	return info, nil
}
