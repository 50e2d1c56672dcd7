package server

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/labstack/echo/v4"
)

// maxKeyLine bounds a line of a keys file, in bytes: far above any key, so that
// a wrong file is noticed.
const maxKeyLine = 4096

// Keys are the API keys that may call. The zero value holds none. The keys
// themselves are forgotten: only their SHA-256 is kept.
type Keys struct {
	hashes [][sha256.Size]byte
}

// NewKeys returns Keys that hold the given ones. A key must be free of white
// space, since it travels in a header.
func NewKeys(keys ...string) (Keys, error) {
	var k Keys
	for i, key := range keys {
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return Keys{}, fmt.Errorf("key %d: a key is one word of visible ASCII", i+1)
		}
		k.hashes = append(k.hashes, sha256.Sum256([]byte(key)))
	}
	return k, nil
}

// LoadKeys reads a file with one key a line; blank lines and lines that start
// with # are passed over. A file without a key is an error, because a service
// that was meant to be guarded must not start open.
func LoadKeys(path string) (Keys, error) {
	f, err := os.Open(path)
	if err != nil {
		return Keys{}, fmt.Errorf("API keys: %w", err)
	}
	defer f.Close()
	keys, err := readKeys(f)
	if err != nil {
		return Keys{}, fmt.Errorf("API keys: %s: %w", path, err)
	}
	return keys, nil
}

func readKeys(r io.Reader) (Keys, error) {
	var all []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxKeyLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if _, err := NewKeys(line); err != nil {
			return Keys{}, fmt.Errorf("line %d: a key is one word of visible ASCII", n)
		}
		all = append(all, line)
	}
	if err := lines.Err(); err != nil {
		return Keys{}, err
	}
	if len(all) == 0 {
		return Keys{}, errors.New("there is no key in it")
	}
	return NewKeys(all...)
}

// Len is how many keys there are.
func (k Keys) Len() int { return len(k.hashes) }

// owner returns who calls with this key: a short name for logs and fairness
// from which the key cannot be had, the same after a restart. The time it takes
// does not depend on how much of a key was right.
func (k Keys) owner(key string) (string, bool) {
	hash := sha256.Sum256([]byte(key))
	found := 0
	for i := range k.hashes {
		found |= subtle.ConstantTimeCompare(hash[:], k.hashes[i][:])
	}
	if found == 0 {
		return "", false
	}
	name := sha256.Sum256(append([]byte("notebox owner\x00"), hash[:]...))
	return hex.EncodeToString(name[:8]), true
}

// CheckListen refuses to serve without keys anywhere but on loopback, unless
// noAuth says that this is meant. addr is host:port.
func CheckListen(addr string, haveKeys, noAuth bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	if haveKeys || noAuth {
		return nil
	}
	if ip, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen address %s: without API keys only loopback is served: set --api-keys-file, or --no-auth if everyone who can reach it may run code", addr)
}

// ownerKey is where a request's owner is kept in its echo.Context.
const ownerKey = "owner"

// requireKey lets a request pass that carries one of the keys; without any keys
// configured, every request (browser.go says which those can be).
func (s *Server) requireKey(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.keys.Len() == 0 {
			return next(c)
		}
		owner, ok := s.keys.owner(presentedKey(c.Request().Header))
		if !ok {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="notebox"`)
			return &problem{status: http.StatusUnauthorized, text: "an API key is needed, as Authorization: Bearer or X-API-Key"}
		}
		c.Set(ownerKey, owner)
		return next(c)
	}
}

// mayCall reports whether a request could run code too.
func (s *Server) mayCall(r *http.Request) bool {
	if s.keys.Len() == 0 {
		return true
	}
	_, ok := s.keys.owner(presentedKey(r.Header))
	return ok
}

// presentedKey prefers Authorization; one of another scheme, which a proxy may
// have left there, does not hide X-API-Key.
func presentedKey(h http.Header) string {
	scheme, key, _ := strings.Cut(h.Get(echo.HeaderAuthorization), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return h.Get("X-API-Key")
}

func ownerOf(c echo.Context) string {
	owner, _ := c.Get(ownerKey).(string)
	return owner
}
