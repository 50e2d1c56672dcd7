package runnertest

import (
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// fakeFolder is /mnt/data of a fake's session.
type fakeFolder struct {
	room int64 // bytes

	mu      sync.Mutex
	entries map[string]fakeEntry // by path; folders have entries too
	noted   map[string]string    // what file operations wrote
}

// fakeEntry is a file or folder.
type fakeEntry struct {
	kind     runner.FileKind
	content  string
	modified time.Time
}

// fakeRefusal is why an operation was not done.
type fakeRefusal struct {
	code    runner.FileCode
	message string
}

func newFakeFolder(room int64) *fakeFolder {
	return &fakeFolder{room: room, entries: map[string]fakeEntry{}, noted: map[string]string{}}
}

// texts are the contents of all that is no folder.
func (f *fakeFolder) texts() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for p, e := range f.entries {
		if e.kind != runner.FileFolder {
			out[p] = e.content
		}
	}
	return out
}

// written is what file operations wrote since the last call.
func (f *fakeFolder) written() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := maps.Clone(f.noted)
	clear(f.noted)
	return out
}

// merge takes over what a cell has made of texts. special are files of other kinds.
func (f *fakeFolder) merge(before, after, special map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, content := range after {
		if old, ok := before[p]; ok && old == content {
			continue
		}
		kind := runner.FileRegular
		switch reason, odd := special[p]; {
		case odd && strings.Contains(reason, "link"):
			kind = runner.FileLink
		case odd:
			kind = runner.FileOther
		}
		f.folders(p)
		f.entries[p] = fakeEntry{kind, content, time.Now()}
	}
	for p := range before {
		if _, ok := after[p]; !ok {
			delete(f.entries, p)
		}
	}
}

// folders makes the folders that a path is in. The lock is held.
func (f *fakeFolder) folders(p string) *fakeRefusal {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		switch e, ok := f.entries[dir]; {
		case !ok:
			f.entries[dir] = fakeEntry{kind: runner.FileFolder, modified: time.Now()}
		case e.kind != runner.FileFolder:
			return &fakeRefusal{runner.FileNotPlain, "not a folder"}
		}
	}
	return nil
}

// do does one operation.
func (f *fakeFolder) do(r frame.FileRequest, content []byte) (frame.FileReply, []frame.FileEntry, []byte, *fakeRefusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var reply frame.FileReply
	e, there := f.entries[r.Path]
	missing := &fakeRefusal{runner.FileNotFound, "there is no such file"}
	switch r.Operation {
	case "list":
		entries, refusal := f.list(r)
		reply.Entries, reply.More = len(entries), false
		if len(entries) > r.Max {
			reply.Entries, reply.More = r.Max, true
		}
		return reply, entries[:reply.Entries], nil, refusal
	case "read":
		switch {
		case !there:
			return reply, nil, nil, missing
		case e.kind != runner.FileRegular:
			return reply, nil, nil, &fakeRefusal{runner.FileNotPlain, "not a regular file"}
		}
		reply.Entry = e.entry(r.Path)
		return reply, nil, []byte(e.content), nil
	case "write":
		refusal := f.write(r.Path, string(content))
		if refusal == nil {
			reply.Entry = f.entries[r.Path].entry(r.Path)
		}
		return reply, nil, nil, refusal
	case "delete":
		if !there {
			return reply, nil, nil, missing
		}
		for p := range f.entries {
			if p == r.Path || strings.HasPrefix(p, r.Path+"/") {
				delete(f.entries, p)
			}
		}
		return reply, nil, nil, nil
	case "move":
		if !there {
			return reply, nil, nil, missing
		}
		if _, taken := f.entries[r.To]; taken && !r.Overwrite {
			return reply, nil, nil, &fakeRefusal{runner.FileExists, "there is a file of that name"}
		}
		if refusal := f.folders(r.To); refusal != nil {
			return reply, nil, nil, refusal
		}
		for p, e := range maps.Clone(f.entries) {
			if below, ok := strings.CutPrefix(p+"/", r.Path+"/"); ok {
				delete(f.entries, p)
				f.entries[path.Join(r.To, below)] = e
			}
		}
		reply.Entry = f.entries[r.To].entry(r.To)
		return reply, nil, nil, nil
	}
	return reply, nil, nil, &fakeRefusal{runner.FileRefused, "not an operation"}
}

func (f *fakeFolder) list(r frame.FileRequest) (entries []frame.FileEntry, refusal *fakeRefusal) {
	if e, ok := f.entries[r.Path]; r.Path != "" {
		switch {
		case !ok:
			return nil, &fakeRefusal{runner.FileNotFound, "there is no such file"}
		case e.kind != runner.FileFolder:
			return nil, &fakeRefusal{runner.FileNotPlain, "not a folder"}
		}
	}
	names := map[string]string{}
	for p := range f.entries {
		below, ok := strings.CutPrefix("/"+p, "/"+r.Path+"/")
		if r.Path == "" {
			below, ok = p, true
		}
		if ok && (r.Recursive || !strings.Contains(below, "/")) {
			names[p] = ""
		}
	}
	for _, p := range sortedKeys(names) {
		entries = append(entries, f.entries[p].entry(p))
	}
	return entries, nil
}

func (f *fakeFolder) write(p, content string) *fakeRefusal {
	if e, ok := f.entries[p]; ok && e.kind == runner.FileFolder {
		return &fakeRefusal{runner.FileNotPlain, "a folder"}
	}
	total := int64(len(content))
	for _, e := range f.entries {
		total += int64(len(e.content))
	}
	if total > f.room {
		return &fakeRefusal{runner.FileNoRoom, "there is no room left"}
	}
	if refusal := f.folders(p); refusal != nil {
		return refusal
	}
	f.entries[p] = fakeEntry{runner.FileRegular, content, time.Now()}
	f.noted[p] = content
	return nil
}

func (e fakeEntry) entry(p string) frame.FileEntry {
	return frame.FileEntry{Path: p, Kind: string(e.kind), Size: int64(len(e.content)), ModifiedNS: e.modified.UnixNano()}
}
