package storage

import (
	"cmp"
	"os"
	"sync"
	"time"
)

const (
	// DefaultKeyAge is after how long another secret signs links: one that leaked without
	// anybody's knowledge is of no use a month later.
	DefaultKeyAge = 30 * 24 * time.Hour

	// keyDelay is how long before it signs a secret is in the file, so that all services
	// that share the file know it when the first link comes: longer than keyCheck, and
	// than a network file system keeps what it has read.
	keyDelay = 2 * time.Minute

	// keyCheck is how old what is known of the file may be.
	keyCheck = 10 * time.Second
)

// keyring has the secrets that sign links, as the key file has them, and adds one when
// the newest is too old. Services that share the file need nothing else to agree.
//
// A line without a time is its owner's, who may have another way to change secrets: while
// it is the last one, none is added.
type keyring struct {
	path string // empty: of this process alone
	age  time.Duration
	keep time.Duration // how long a secret verifies after it has signed last
	now  func() time.Time

	mu      sync.Mutex
	secrets []secret // oldest first
	checked time.Time
	file    os.FileInfo // as it was read
}

func openKeyring(path string, age, ttl time.Duration, now func() time.Time) (*keyring, error) {
	k := &keyring{path: path, age: cmp.Or(max(age, 0), DefaultKeyAge), keep: ttl + 2*keyDelay, now: now}
	if path == "" {
		k.secrets = []secret{newSecret(now())}
		return k, nil
	}
	if err := k.load(); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *keyring) load() error {
	k.checked = k.now()
	found, err := loadSecrets(k.path, k.checked, k.next)
	if err != nil {
		return err
	}
	k.secrets = found
	k.file, _ = os.Stat(k.path) // unknown: it is read again
	return nil
}

// next is what to add to secrets, if that is due.
func (k *keyring) next(secrets []secret) (secret, bool) {
	last := secrets[len(secrets)-1].from
	if k.path != "" && (last.IsZero() || k.now().Sub(last) < k.age) {
		return secret{}, false
	}
	return newSecret(k.now().Add(keyDelay)), true
}

// refresh reads the file again if it has changed, and if a secret is due. What
// fails is tried again later: the secrets that are known are good until then.
func (k *keyring) refresh() {
	now := k.now()
	if age := now.Sub(k.checked); age >= 0 && age < keyCheck {
		return
	}
	k.checked = now
	_, due := k.next(k.secrets)
	if k.path == "" {
		if due = now.Sub(k.secrets[len(k.secrets)-1].from) >= k.age; due {
			k.secrets = append(k.secrets, newSecret(now))
		}
		return
	}
	info, err := os.Stat(k.path)
	same := err == nil && k.file != nil && os.SameFile(info, k.file) && info.Size() == k.file.Size() && info.ModTime().Equal(k.file.ModTime())
	if due || !same {
		_ = k.load()
	}
}

// signing is the secret that signs now: the last one whose time has come.
func (k *keyring) signing() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	return k.secrets[k.signer()].key
}

func (k *keyring) signer() int {
	now := k.now()
	for i := len(k.secrets) - 1; i > 0; i-- {
		if !k.secrets[i].from.After(now) {
			return i
		}
	}
	return 0
}

// verifying are the secrets that links may be signed with that still work. One that is
// to sign soon is among them: the other service's clock may be ahead.
func (k *keyring) verifying() [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	now := k.now()
	var keys [][]byte
	for i, s := range k.secrets {
		// Without its successor's time it is not known when it signed last.
		timed := !s.from.IsZero() && i < k.signer() && !k.secrets[i+1].from.IsZero()
		if !timed || now.Sub(k.secrets[i+1].from) <= k.keep {
			keys = append(keys, s.key)
		}
	}
	return keys
}
