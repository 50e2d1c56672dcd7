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
	"sync/atomic"

	"notebox/storage"
)

// Storage is the check that writes, reads and removes one object. Links are not looked at:
// o.KeyFile is left alone. The clock is that of a store in a cloud, and may be asked after the
// check; nil if the store is none.
func Storage(o storage.Options) (check Check, clock *OtherClock) {
	o.KeyFile = ""
	var address atomic.Pointer[string] // of a cloud
	var works atomic.Bool
	check = Check{Name: "storage", Vital: true, Look: func(ctx context.Context) Finding {
		folder := FolderOf(o.URL)
		there := nearest(folder)
		store, err := storage.Open(ctx, o)
		if err != nil {
			return wrong(mendStorage(o.URL), "%s", words(err))
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
		if link, _, err := store.Link(ctx, "doctor/none.txt", ""); err == nil {
			if u, err := url.Parse(link); err == nil && u.Host != "" { // else the service serves files
				address.CompareAndSwap(nil, &link) // the host alone is of interest
			}
		}
		if failed := roundTrip(ctx, store); failed != "" {
			return wrong(mendStorage(o.URL), "%s: %s", store.Name(), failed)
		}
		works.Store(true)
		return ok("an object was written to %s, read and removed", store.Name())
	}}
	u, err := url.Parse(o.URL)
	if err != nil || variablesOf[u.Scheme] == "" {
		return check, nil
	}
	if endpoint := u.Query().Get("endpoint"); endpoint != "" {
		address.Store(&endpoint)
	}
	const of = "the store's"
	return check, &OtherClock{Of: of, Read: func(ctx context.Context) (Reading, error) {
		if at := address.Load(); at != nil {
			return WebClock(of, *at).Read(ctx)
		}
		if works.Load() {
			return Reading{}, errNoAddress
		}
		return Reading{}, errors.New("its address is not known")
	}}
}

// FolderOf is the folder that a URL of a store names, clean; "" if it is a cloud's.
func FolderOf(storageURL string) string {
	u, err := url.Parse(storageURL)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return ""
	}
	return filepath.Clean(filepath.FromSlash(u.Path))
}

// variablesOf are the variables that a store in a cloud takes its credentials from, by the
// scheme of its URL.
var variablesOf = map[string]string{
	"azblob": "AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
	"s3":     "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the machine's role",
	"gs":     "GOOGLE_APPLICATION_CREDENTIALS, or the machine's own account",
}

func mendStorage(storageURL string) string {
	scheme, _, _ := strings.Cut(storageURL, "://")
	if folder := FolderOf(storageURL); folder != "" {
		return "Let this user write to " + folder + ", free space there, or name another place by --storage."
	}
	if variables := variablesOf[strings.ToLower(scheme)]; variables != "" {
		return "See whether the server runs, its address in --storage and the network are right, and the credentials: " + variables + ". A cloud also refuses what comes from a wrong clock."
	}
	return "Set --storage to file:///folder, azblob://container, s3://bucket?region=… or gs://bucket."
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
