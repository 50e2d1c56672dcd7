package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	// keyBytes of randomness are in a new key: nobody guesses it, whatever is known
	// of its hash.
	keyBytes = 32
	// keyPrefix lets people, and scanners of source code, see what a key is for.
	keyPrefix = "notebox_"
	// ownerBytes of a hash are an owner: among a million, two are equal with a chance
	// of one in 10^7, and the file would be refused.
	ownerBytes = 8
)

// Secret is the SHA-256 of a key. It needs neither salt nor a slow hash: those are
// for words that people choose, and a key is random.
type Secret [sha256.Size]byte

// SecretOf hashes a key.
func SecretOf(key string) Secret { return sha256.Sum256([]byte(key)) }

// String is the secret as it stands in a keys file.
func (s Secret) String() string { return secretPrefix + hex.EncodeToString(s[:]) }

// NewKey returns a new key with 256 random bits.
func NewKey() string {
	var raw [keyBytes]byte
	_, _ = rand.Read(raw[:]) // never fails, see its documentation
	return keyPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
}

// IsKey reports whether a text can be a key: one word of visible ASCII, since it
// travels in a header.
func IsKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// Owner is the owner of a plain key's things, the same after a restart. The key
// cannot be had from it.
func (s Secret) Owner() string {
	return ownerFrom(append([]byte("notebox owner\x00"), s[:]...))
}

// ownerOfName is the owner of a named line's things.
func ownerOfName(name string) string {
	return ownerFrom([]byte("notebox owner's name\x00" + name))
}

func ownerFrom(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:ownerBytes])
}
