package executor

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/storage"
)

// maxListText bounds the paths in one list, in bytes: names are the user's code's, and
// ten thousand of the longest would be 40 MB.
const maxListText = 4 << 20

// FileEntry is a file or folder of a session, as callers see it.
type FileEntry struct {
	Path       string          `json:"path"`
	Name       string          `json:"name"`
	Kind       runner.FileKind `json:"kind"`
	Bytes      int64           `json:"bytes"`
	MediaType  *string         `json:"media_type"` // by the name; null for what is no regular file
	ModifiedAt time.Time       `json:"modified_at"`
}

func entryOf(f runner.FileInfo) FileEntry {
	entry := FileEntry{Path: runner.DataFolder + "/" + f.Path, Name: path.Base(f.Path), Kind: f.Kind, ModifiedAt: ModifiedAt(f)}
	if f.Kind == runner.FileRegular {
		entry.Bytes, entry.MediaType = max(0, f.Size), new(storage.NamedType(entry.Name))
	}
	return entry
}

// ModifiedAt is the time that the user's programs have set, where JSON has it.
func ModifiedAt(f runner.FileInfo) time.Time {
	t := f.Modified.UTC().Truncate(time.Millisecond)
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t
}

// EnterFiles takes one of the places for files of sessions. leave gives it back, and may be
// called again.
func (s *Session) EnterFiles() (leave func(), err error) {
	return s.x.transfers.Enter(s.caller.Owner())
}

// Transfers is how many places for files of sessions are taken.
func (x *Executor) Transfers() int { return x.transfers.Taken() }

// ListFiles returns the entries of a folder, "" for all of it. more is whether there are more.
func (s *Session) ListFiles(ctx context.Context, folder string, recursive bool) (files []FileEntry, more bool, err error) {
	var found []runner.FileInfo
	err = inTime(ctx, sessionCallTime, func(ctx context.Context) error {
		found, more, err = s.live.List(ctx, folder, recursive)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	files, left := []FileEntry{}, maxListText
	for _, f := range found {
		if left -= len(f.Path); left < 0 {
			return files, true, nil
		}
		files = append(files, entryOf(f))
	}
	return files, more, nil
}

// SessionFile is a file of a session, and its content: Size bytes, or an error. It must be
// closed.
type SessionFile struct {
	runner.FileInfo
	MediaType string // by its name and its first bytes
	io.Reader
	io.Closer
}

// ReadFile returns a file. A sandbox that gives no byte for StoreStall is an error.
func (s *Session) ReadFile(ctx context.Context, name string) (*SessionFile, error) {
	var info runner.FileInfo
	content, err := openWatched(ctx, s.x.stall, func(ctx context.Context) (content io.ReadCloser, err error) {
		info, content, err = s.live.Read(ctx, name)
		return content, err
	})
	if err != nil {
		return nil, stalled(ctx, err)
	}
	buffered := bufio.NewReaderSize(content, sniffed)
	head, err := buffered.Peek(int(min(sniffed, max(0, info.Size))))
	if err != nil || info.Size < 0 {
		defer content.Close()
		return nil, stalled(content.ctx, changed(name))
	}
	return &SessionFile{info, storage.MediaType(path.Base(info.Path), head), buffered, content}, nil
}

// sniffed is how many bytes of a file its type is told by.
const sniffed = 512

// changed is the error of a file whose content is not what was told of it.
func changed(name string) error {
	return &runner.FileError{Code: runner.FileBusy, Path: name, Message: "it was changed while it was read"}
}

// MaxFile is how large a file that is written may be, in bytes.
func (s *Session) MaxFile() int64 { return min(s.x.maxUpload, s.DataSize()) }

// WriteFile makes or replaces a file. Content that ends with an error leaves nothing. isNew is
// whether there was none before.
func (s *Session) WriteFile(ctx context.Context, name string, content io.Reader) (written FileEntry, isNew bool, err error) {
	timed, steady, stop := watchStall(ctx, content, s.x.stall)
	defer stop()
	isNew = s.isMissing(timed, name)
	info, err := s.live.Write(timed, name, steady)
	return entryOf(info), isNew, stalled(timed, err)
}

// isMissing is whether there is no such file at this moment.
func (s *Session) isMissing(ctx context.Context, name string) bool {
	_, content, err := s.live.Read(ctx, name)
	if err == nil {
		_ = content.Close() // nothing was read
	}
	var failed *runner.FileError
	return errors.As(err, &failed) && failed.Code == runner.FileNotFound
}

// StoreFile puts a copy of a file into the store, under a key.
func (s *Session) StoreFile(ctx context.Context, name, key string) error {
	info, content, err := s.live.Read(ctx, name)
	if err != nil {
		return err
	}
	defer content.Close()
	if most := s.DataSize(); info.Size > most { // only a sparse one is, of whatever size
		return problem.TooLarge("path", "it is longer than the %d bytes that %s/ has room for: a sparse file is not stored", most, runner.DataFolder)
	}
	whole := &WatchedReader{Reader: content}
	again := s.x.store.Replay(whole, s.x.intake.Dir())
	defer again.Close()
	_, err = s.x.put(ctx, key, again, path.Base(name))
	switch {
	case err == nil:
		return nil
	case whole.Failed != nil:
		return changed(name)
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	}
	return &problem.Error{Status: problem.StatusUnavailable, Text: "the file cannot be stored now", RetryAfter: intake.DiskRetry, Cause: WithoutKey(err, key)}
}

// DeleteFile removes a file, a link, or a folder with all that is in it.
func (s *Session) DeleteFile(ctx context.Context, name string) error {
	return inTime(ctx, sessionCallTime, func(ctx context.Context) error { return s.live.Delete(ctx, name) })
}

// MoveFile renames a file or a folder, see runner.Files.
func (s *Session) MoveFile(ctx context.Context, from, to string, overwrite bool) (moved FileEntry, err error) {
	var info runner.FileInfo
	err = inTime(ctx, sessionCallTime, func(ctx context.Context) error {
		info, err = s.live.Move(ctx, from, to, overwrite)
		return err
	})
	return entryOf(info), err
}

// stalled is the error of a sandbox that was waited for. If the error or the cause of ctx
// is ErrStalled, the sandbox did not answer.
func stalled(ctx context.Context, err error) error {
	if err = joinStall(ctx, err); errors.Is(err, ErrStalled) {
		return &problem.Error{Status: problem.StatusTimeout, Text: "the sandbox did not answer in time", Cause: err}
	}
	return err
}

// IsComponent reports whether text is one component of a path that leads down.
func IsComponent(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\x00") && utf8.ValidString(text)
}

// IsPath reports whether text is a path that leads below /mnt/data. Names are what the
// user's code may have made: any bytes but NUL, as UTF-8.
func IsPath(text string) bool {
	for part := range strings.SplitSeq(text, "/") {
		if !IsComponent(part) {
			return false
		}
	}
	return true
}

// GivenPath reads a path of a request's field, with or without /mnt/data before it. "" is
// /mnt/data.
func GivenPath(field, given string) (string, error) {
	if given == "" || given == runner.DataFolder || given == runner.DataFolder+"/" {
		return "", nil
	}
	given = strings.TrimSuffix(strings.TrimPrefix(given, runner.DataFolder+"/"), "/")
	if !IsPath(given) {
		return "", problem.Unfit(field, "is no path within %s/", runner.DataFolder)
	}
	return given, nil
}
