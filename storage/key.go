package storage

import (
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is what an object is to its run. Its text stands in the key.
type Kind string

// The kinds of objects that a run has. Of a notebook, a result and a share it has one each.
const (
	KindFile     Kind = "files"
	KindImage    Kind = "images"
	KindNotebook Kind = "notebook.ipynb"
	KindResult   Kind = "result.json"
	KindShare    Kind = "share.jsonl"
)

const (
	// runsPrefix is the first component of every run's keys.
	runsPrefix = "runs"

	// inputsPrefix is the first component of the keys of what is kept for later runs.
	inputsPrefix = "inputs"

	// maxKeyBytes is S3's limit, and within those of Azure (1,024 characters), Google
	// Cloud Storage (1,024 bytes) and Linux (4,096 bytes).
	maxKeyBytes = 1024

	// maxRunIDBytes bounds a run's id in the key, so that with maxNameBytes a key stays
	// within maxKeyBytes.
	maxRunIDBytes = 64
)

// RunKey is the key of one object of a run: runs/<date>/<run id>/files/<name>, the same
// with images/, or …/notebook.ipynb, …/result.json and …/share.jsonl, for which name counts
// nothing.
// The date is that of started in UTC, so that a store's own rules can remove old runs
// by prefix or age.
//
// Names come from hostile code. Any string is taken, different names give different
// keys, and a key never leaves its run; see escape.go for how, and for what stays as it
// is ("out.csv").
func RunKey(started time.Time, runID string, kind Kind, name string) string {
	key := runsPrefix + "/" + started.UTC().Format(time.DateOnly) + "/" + shortComponent(runID, maxRunIDBytes) + "/" + string(kind)
	switch kind {
	case KindNotebook, KindResult, KindShare:
		return key
	default:
		return key + "/" + escapeName(name)
	}
}

// Part is what an object is to a kept input. Its text stands in the key.
type Part string

// The objects of a kept input: what is known of it, and its bytes.
const (
	PartAbout   Part = "about.json"
	PartContent Part = "content"
)

// InputKey is the key of one object of a file that is kept for later runs:
// inputs/<date>/<owner>/<id>/<part>. The date is that of made in UTC, for the same reason
// as in RunKey, and any owner and id are taken.
func InputKey(made time.Time, owner, id string, part Part) string {
	return path.Join(inputsPrefix, made.UTC().Format(time.DateOnly), shortComponent(owner, maxComponentBytes), shortComponent(id, maxComponentBytes), string(part))
}

// nameOf is the name that RunKey made key of, or the last part of any other key.
func nameOf(key string) string {
	if parts := strings.SplitN(key, "/", 5); len(parts) == 5 && parts[0] == runsPrefix {
		if name, ok := unescapeName(parts[4]); ok {
			return name
		}
	}
	return path.Base(key)
}

// validKey reports whether key means one object and that one alone in every store: no
// component that a file system resolves, nothing that fileblob keeps for itself, nothing
// that a driver or a cloud would write in another way. Every result of RunKey is valid.
func validKey(key string) bool {
	if len(key) > maxKeyBytes || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) ||
		strings.ContainsAny(key, `"#%?\`) || strings.Contains(key, driverEscape) {
		return false
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || strings.HasSuffix(part, ".") || len(part) > maxComponentBytes || reservedEnding(part) >= 0 {
			return false
		}
	}
	return true
}
