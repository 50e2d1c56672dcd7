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
)

const (
	// secretBytes is the length of one secret: that of the hash, beyond which HMAC gains
	// nothing (RFC 2104, section 3).
	secretBytes = sha256.Size

	// maxKeyFileBytes bounds what is read as a key file: hundreds of secrets.
	maxKeyFileBytes = 64 << 10

	keyFileMode   = 0o600
	keyFileHeader = "# notebox: secrets that sign links, one a line. The last one signs, all of them verify.\n"
)

// secrets are the keys of the HMAC, oldest first; there is at least one.
type secrets [][]byte

func (s secrets) newest() []byte { return s[len(s)-1] }

// loadSecrets reads the key file, and makes it where there is none. Without a path it
// makes a secret for this process.
//
// The file is made and read under a lock: of two processes that start at once, the
// second waits and then reads what the first wrote. An empty file is one whose maker
// died, and is filled.
func loadSecrets(path string) (secrets, error) {
	if path == "" {
		return secrets{newSecret()}, nil
	}
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
		content, err = fillKeyFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	parsed, err := parseSecrets(content)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return parsed, nil
}

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails: it ends the process
	return secret
}

// openKeyFile opens the file for writing, or for reading where that is all it allows, as
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
	case info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("%s has mode %04o, which lets others use the secret: chmod 600 it", path, info.Mode().Perm())
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// fillKeyFile writes a new secret. It is on the disk before a link is signed with it.
func fillKeyFile(file *os.File) ([]byte, error) {
	content := []byte(keyFileHeader + hex.EncodeToString(newSecret()) + "\n")
	_, err := file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Truncate(0))
	}
	return content, nil
}

// parseSecrets reads a key file: one secret a line in hex digits; empty lines and those
// that start with # count nothing. Errors never quote it.
func parseSecrets(content []byte) (secrets, error) {
	if len(content) > maxKeyFileBytes {
		return nil, fmt.Errorf("more than %d bytes", maxKeyFileBytes)
	}
	var found secrets
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := hex.DecodeString(line)
		if err != nil || len(secret) != secretBytes {
			return nil, fmt.Errorf("line %d: want a secret of %d hex digits", number, hex.EncodedLen(secretBytes))
		}
		found = append(found, secret)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("holds no secret")
	}
	return found, nil
}
