package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"notebox/access"
)

// firstKeyName is the name of the key that a service makes for itself.
const firstKeyName = "first"

// openKeys reads the keys file, if there is one, and follows it.
func (p *program) openKeys(ctx context.Context) (err error) {
	if p.settings.apiKeysFile == "" {
		return nil
	}
	if p.settings.firstKey {
		if err := makeFirstKey(ctx, p.settings.apiKeysFile, os.Stderr); err != nil {
			return err
		}
	}
	p.keys, err = access.Open(p.settings.apiKeysFile, access.Options{
		UsageFile: p.state.path("cpu-used.json"),
		Log:       p.log,
	})
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.keys.Watch(watching) })
	p.onClose(func() error {
		stop()
		watch.Wait()
		return p.keys.Close()
	})
	return nil
}

// makeFirstKey adds a key to a file that has none, and says to out what the key is. The file has
// its SHA-256 alone, so it is shown even if the log is to have errors only.
func makeFirstKey(ctx context.Context, file string, out io.Writer) error {
	info, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("API keys: %w", err)
	}
	if err == nil && info.Size() > 0 {
		return nil
	}
	key := access.NewKey()
	if err := access.Add(ctx, file, access.NamedEntry(firstKeyName, access.Limits{}, access.SecretOf(key))); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "notebox: made an API key, and shows it this once: %s\nnotebox: notebox key -file %s NAME makes another one\n", key, file)
	return err
}

// queue is one whose places can be shared between callers.
type queue interface{ ShareWaiting(on bool) }

// shareBetweenKeys has the queues shared as long as there are several callers.
func (p *program) shareBetweenKeys(all ...queue) {
	p.keys.OnChange(func(callers int) {
		for _, a := range all {
			a.ShareWaiting(callers > 1)
		}
	})
}
