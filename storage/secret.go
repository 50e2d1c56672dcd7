package storage

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// secretBytes is the length of one secret: that of the hash, beyond which HMAC gains
	// nothing (RFC 2104, section 3).
	secretBytes = sha256.Size

	// maxKeyFileBytes bounds what is read as a key file: hundreds of secrets.
	maxKeyFileBytes = 64 << 10

	keyFileMode   = 0o600
	keyFileHeader = "# notebox: secrets that sign links, one a line, with the time from which it signs.\n# The last one whose time has come signs; older ones verify while their links work.\n"
)

// secret is a key of the HMAC.
type secret struct {
	key  []byte
	from time.Time // when it begins to sign; zero is always, of a line without a time
}

// line is the secret as the file has it.
func (s secret) line() string {
	return hex.EncodeToString(s.key) + " " + s.from.UTC().Format(time.RFC3339) + "\n"
}

// loadSecrets reads the key file, oldest first; there is at least one. It makes the file
// if there is none, and adds what next returns, if anything, for those that it found.
//
// The file is made, read and added to under a lock: of two processes that start at once,
// the second waits and then reads what the first wrote. An empty file is one whose maker
// died, and is filled. Nothing in it is ever rewritten, so that no crash takes a secret;
// at one a month it is full after 40 years.
func loadSecrets(path string, now time.Time, next func([]secret) (secret, bool)) ([]secret, error) {
	file, err := openKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock key file %s: %w", path, err)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeyFileBytes+1))
	if err == nil && len(content) == 0 {
		content = []byte(keyFileHeader + newSecret(now).line())
		err = addToKeyFile(file, 0, content)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	parsed, err := parseSecrets(content)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	added, due := next(parsed)
	if !due {
		return parsed, nil
	}
	line := added.line()
	if content[len(content)-1] != '\n' {
		line = "\n" + line
	}
	err = addToKeyFile(file, int64(len(content)), []byte(line))
	if errors.Is(err, syscall.EBADF) {
		return parsed, nil // it may be read alone: who mounts it changes it
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return append(parsed, added), nil
}

func newSecret(from time.Time) secret {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // it never fails: it ends the process
	return secret{key, from.Truncate(time.Second)}
}

// openKeyFile opens the file for writing, or for reading if that is all it allows, as
// with a secret that is mounted.
func openKeyFile(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, keyFileMode)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		file, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&others(info) != 0:
		err = fmt.Errorf("%s has mode %04o, which lets others use the secret: chmod 600 it", path, info.Mode().Perm())
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// others are the bits of a mode that let others use a secret. Where the file is another user's, as
// one that a cluster mounts for a pod, the group is how this process may read it.
func others(info fs.FileInfo) fs.FileMode {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return 0o037
	}
	return 0o077
}

// addToKeyFile writes at the end, which is at size. What it has written is on the disk
// before a link is signed with it, and gone where that fails.
func addToKeyFile(file *os.File, size int64, content []byte) error {
	_, err := file.WriteAt(content, size)
	if err == nil {
		err = file.Sync()
	}
	if err != nil && !errors.Is(err, syscall.EBADF) {
		err = errors.Join(err, file.Truncate(size))
	}
	return err
}

// parseSecrets reads a key file: one secret a line in hex digits, and after a space the
// time (RFC 3339) from which it signs, which may be missing; empty lines and those that
// start with # count nothing. Errors never quote it.
func parseSecrets(content []byte) ([]secret, error) {
	if len(content) > maxKeyFileBytes {
		return nil, fmt.Errorf("more than %d bytes", maxKeyFileBytes)
	}
	var found []secret
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		digits, date, dated := strings.Cut(line, " ")
		key, err := hex.DecodeString(digits)
		if err != nil || len(key) != secretBytes {
			return nil, fmt.Errorf("line %d: want a secret of %d hex digits", number, hex.EncodedLen(secretBytes))
		}
		var from time.Time
		if dated {
			if from, err = time.Parse(time.RFC3339, strings.TrimSpace(date)); err != nil {
				return nil, fmt.Errorf("line %d: want a time as 2026-01-31T12:00:00Z after the secret", number)
			}
		}
		found = append(found, secret{key, from})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("holds no secret")
	}
	return found, nil
}
