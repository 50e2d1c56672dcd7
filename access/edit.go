package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// editWait bounds how long an edit waits for others: each takes milliseconds, on a
// slow disk a second.
const editWait = time.Minute

// Add appends a named entry to a keys file, which is made if it is missing. The
// file is replaced in one step by one of mode 0600. A plain key whose owner the entry
// takes over is put out by it.
func Add(ctx context.Context, path string, e Entry) error {
	return edit(ctx, path, func(lines []string) ([]string, error) {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			old, err := ParseLine(strings.TrimSpace(line))
			return err == nil && old.Name == "" && old.Owner == e.Owner && slices.Contains(e.Secrets, old.Secrets[0])
		})
		return append(lines, e.String()), nil
	})
}

// AddSecret lets the caller of a name present one more key. The others go on until
// they are taken out of the file by hand.
func AddSecret(ctx context.Context, path, name string, s Secret) error {
	return edit(ctx, path, func(lines []string) ([]string, error) {
		at := slices.IndexFunc(lines, func(line string) bool {
			words := strings.Fields(line)
			return len(words) > 1 && words[0] == name
		})
		if at < 0 {
			return nil, errors.New("there is no such name in it")
		}
		lines[at] = strings.Replace(lines[at], name, name+" "+s.String(), 1)
		return lines, nil
	})
}

func edit(ctx context.Context, path string, change func(lines []string) ([]string, error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("API keys: %s: %w", path, err)
		}
	}()
	if real, err := filepath.EvalSymlinks(path); err == nil { // the link stays
		path = real
	}
	ctx, cancel := context.WithTimeout(ctx, editWait)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another change: %w", err)
	}
	// The file of the lock stays: to remove it would let two have one each.
	defer lock.Close()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return withoutPath(err)
	}
	var lines []string
	if text := strings.TrimSuffix(string(raw), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	if lines, err = change(lines); err != nil {
		return err
	}
	content := []byte(strings.Join(lines, "\n") + "\n")
	if _, err := Parse(bytes.NewReader(content)); err != nil {
		return err
	}
	return writeFile(path, content)
}
