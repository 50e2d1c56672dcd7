package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"notebox/storage"
)

// Storage is the check that writes, reads and removes one object. Links are not looked at:
// o.KeyFile is left alone.
func Storage(o storage.Options) Check {
	o.KeyFile = ""
	return Check{Name: "storage", Vital: true, Look: func(ctx context.Context) Finding {
		folder := FolderOf(o.URL)
		there := nearest(folder)
		store, err := storage.Open(ctx, o)
		if err != nil {
			return wrong(mendStorage(folder), "%s", words(err))
		}
		defer func() {
			store.Close()
			if folder != "" && folder != there { // it is the service's to make
				removeEmpty(folder)
				for above := filepath.Dir(folder); len(above) > len(there); above = filepath.Dir(above) {
					_ = os.Remove(above) // if it is empty
				}
			}
		}()
		if failed := roundTrip(ctx, store); failed != "" {
			return wrong(mendStorage(folder), "%s: %s", store.Name(), failed)
		}
		return ok("an object was written to %s, read and removed", store.Name())
	}}
}

// FolderOf is the folder that a URL of a store names; "" if it is a cloud's.
func FolderOf(storageURL string) string {
	u, err := url.Parse(storageURL)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return filepath.FromSlash(u.Path)
}

func mendStorage(folder string) string {
	if folder != "" {
		return "Let this user write to " + folder + ", free space there, or name another place by --storage."
	}
	return "See whether the address, the credentials and the network are right: docs/files.md says which variables a store reads."
}

// roundTrip says what failed, or "".
func roundTrip(ctx context.Context, s *storage.Store) string {
	key := "doctor/" + strings.ToLower(rand.Text()) + ".txt"
	text := "notebox doctor\n"
	if _, err := s.Put(ctx, key, strings.NewReader(text), "doctor.txt"); err != nil {
		return words(err)
	}
	read := func() error {
		r, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		defer r.Close()
		got, err := io.ReadAll(io.LimitReader(r, int64(len(text))+1))
		if err == nil && string(got) != text {
			err = errors.New("another text came back than was written")
		}
		return err
	}
	failed := read()
	if err := errors.Join(failed, s.Delete(context.WithoutCancel(ctx), key)); err != nil {
		return words(err)
	}
	return ""
}

// removeEmpty removes a folder and those in it, unless there is a file.
func removeEmpty(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			removeEmpty(filepath.Join(folder, e.Name()))
		}
	}
	_ = os.Remove(folder) // with a file in it, it stays
}
