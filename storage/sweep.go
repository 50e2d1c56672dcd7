package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"
)

const (
	// sweepAtOnce is how many objects are deleted at one time: with 10 ms for each, a
	// million in 20 minutes, and far below what any store takes of one client.
	sweepAtOnce = 8
	// maxSweepErrors of one sweep are told of; where a store refuses one, it mostly
	// refuses all.
	maxSweepErrors = 5
)

// Sweep removes the objects of runs, and the inputs that are kept for later ones, which
// were written before that time. Records stay: whoever makes them knows when they end.
//
// It reads the names of the date folders and lists only those of that day and older, so
// that its cost does not grow with what is young. An object goes by its own time and not
// its folder's, since a run may write long after it began.
//
// Any number of processes may sweep one store at once, and each may end in between: an
// object that is gone already is well. What cannot be
// removed is left for the next sweep, and the error says so when the rest is swept.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	w := &sweeping{store: s, before: before.UTC()}
	for _, prefix := range []string{runsPrefix, inputsPrefix} {
		days, err := w.days(ctx, prefix)
		if err != nil {
			w.fail(err)
			continue
		}
		for _, day := range days {
			if err := w.sweep(ctx, prefix, day); err != nil {
				w.fail(err)
			}
		}
	}
	if err = errors.Join(w.failed...); err != nil {
		err = fmt.Errorf("storage: sweep: %w", shown(err))
	}
	return int(w.removed.Load()), err
}

// sweeping is one Sweep.
type sweeping struct {
	store   *Store
	before  time.Time
	removed atomic.Int64

	mu     sync.Mutex
	failed []error
}

func (w *sweeping) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failed) < maxSweepErrors {
		w.failed = append(w.failed, err)
	}
}

// days returns the names of the date folders that may hold something old, in order.
func (w *sweeping) days(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	var err error
	if f := w.store.folder; f != nil {
		names, err = f.folders(prefix)
	} else {
		names, err = w.store.folders(ctx, prefix)
	}
	youngest := w.before.Format(time.DateOnly)
	days := slices.DeleteFunc(names, func(name string) bool {
		_, err := time.Parse(time.DateOnly, name)
		return err != nil || name > youngest
	})
	slices.Sort(days)
	return days, err
}

// folders lists what stands directly below a prefix, without what is in it.
func (s *Store) folders(ctx context.Context, prefix string) (names []string, err error) {
	options := &blob.ListOptions{Prefix: prefix + "/", Delimiter: "/"}
	err = s.pages(ctx, options, func(page []*blob.ListObject) error {
		for _, o := range page {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, options.Prefix), "/"); ok && o.IsDir {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

func (f *folder) folders(prefix string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(f.path, prefix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if entry.IsDir() { // not a link to one
			names = append(names, entry.Name())
		}
	}
	return names, err
}

func (w *sweeping) sweep(ctx context.Context, prefix, day string) error {
	if w.store.folder != nil {
		return w.sweepFolder(ctx, prefix, day)
	}
	return w.store.pages(ctx, &blob.ListOptions{Prefix: prefix + "/" + day + "/"}, func(page []*blob.ListObject) error {
		var group errgroup.Group
		group.SetLimit(sweepAtOnce)
		for _, o := range page {
			if !o.IsDir && sweepable(o.Key) && o.ModTime.Before(w.before) {
				group.Go(func() error { return w.remove(ctx, o.Key) })
			}
		}
		return group.Wait()
	})
}

// remove deletes one object. Its error is the end of ctx alone: what one object is in the
// way of does not keep the others.
func (w *sweeping) remove(ctx context.Context, key string) error {
	switch err := w.store.remove(ctx, key); {
	case err == nil:
		w.removed.Add(1)
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.Is(err, ErrNotFound):
		w.fail(err)
	}
	return nil
}

// sweepFolder also removes the folders of a day on which every run has ended long since,
// when nothing is left in them. In a younger one a Put may just have made its folder.
func (w *sweeping) sweepFolder(ctx context.Context, prefix, day string) error {
	root := w.store.folder.path
	settled := day < w.before.AddDate(0, 0, -1).Format(time.DateOnly)
	var folders []string
	err := filepath.WalkDir(filepath.Join(root, prefix, day), func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // another sweep was here
		case err != nil:
			w.fail(err)
		case entry.IsDir():
			folders = append(folders, path)
		case entry.Type().IsRegular() && settled && folderTemporary.MatchString(entry.Name()):
			removeUnlocked(path)
		case entry.Type().IsRegular():
			w.removeFile(root, path, entry)
		}
		return nil
	})
	if settled {
		for _, folder := range slices.Backward(folders) {
			_ = os.Remove(folder) // fails where something is in it
		}
	}
	return err
}

func (w *sweeping) removeFile(root, path string, entry fs.DirEntry) {
	key, err := filepath.Rel(root, path)
	if err != nil || !sweepable(filepath.ToSlash(key)) {
		return
	}
	info, err := entry.Info()
	if err == nil && !info.ModTime().Before(w.before) {
		return
	}
	if err == nil {
		err = os.Remove(path)
	}
	switch {
	case err == nil:
		w.removed.Add(1)
	case !errors.Is(err, fs.ErrNotExist):
		w.fail(err)
	}
}

// sweepable reports whether a key is of the form that RunKey or InputKey makes: people
// point a store at folders and containers that hold other things too.
func sweepable(key string) bool {
	parts := strings.SplitN(key, "/", 5)
	if len(parts) < 4 || !validKey(key) {
		return false
	}
	switch parts[0] {
	case runsPrefix:
		switch Kind(parts[3]) {
		case KindFile, KindImage:
			return len(parts) == 5
		case KindNotebook, KindResult, KindShare:
			return len(parts) == 4
		}
	case inputsPrefix:
		return len(parts) == 5 && (parts[4] == string(PartAbout) || parts[4] == string(PartContent))
	}
	return false
}
