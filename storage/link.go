package storage

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// LinkPath is where the service that serves the links must answer. What follows it in
	// a request's decoded path is the key.
	LinkPath = "/v1/files/"

	// signatureVersion is signed too, so that what the secret signs for one purpose and
	// in one form is never taken for another.
	signatureVersion = "notebox file link v1"

	queryExpires   = "expires"
	querySignature = "signature"
)

// linkTimeout bounds what asks a cloud for a signature. Few do: those with an identity
// and no key.
const linkTimeout = 10 * time.Second

// Link makes a link to the object key that works until expires (UTC, whole seconds).
// base is what the link starts with where this service serves it, see [Options.ServeFiles]:
// "https://code.example.org". Whether there is such an object is not looked up.
func (s *Store) Link(ctx context.Context, key, base string) (link string, expires time.Time, err error) {
	if !validKey(key) || isRecord(key) {
		return "", time.Time{}, fmt.Errorf("storage: link to %q: not a key", key)
	}
	if !s.direct {
		query, expires := s.ownQuery(key)
		address := url.URL{Path: LinkPath + key}
		return strings.TrimRight(base, "/") + address.EscapedPath() + "?" + query.Encode(), expires, nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	expires = time.Now().Add(s.ttl).Truncate(time.Second).UTC() // of the cloud's clock, not of s.now
	if link, err = s.cloud.sign(ctx, key, expires); err != nil {
		return "", time.Time{}, fmt.Errorf("storage: link to %q: %w", key, shown(err))
	}
	return link, expires, nil
}

// Sign makes the query that Verify takes for key until expires (UTC, whole seconds), for an
// address of the service's own at which it serves the object itself, whatever the store.
func (s *Store) Sign(key string) (query url.Values, expires time.Time, err error) {
	if !validKey(key) || isRecord(key) {
		return nil, time.Time{}, fmt.Errorf("storage: sign %q: not a key", key)
	}
	query, expires = s.ownQuery(key)
	return query, expires, nil
}

func (s *Store) ownQuery(key string) (query url.Values, expires time.Time) {
	expires = time.Unix(s.now().Add(s.ttl).Unix(), 0).UTC()
	seconds := strconv.FormatInt(expires.Unix(), 10)
	return url.Values{
		queryExpires:   {seconds},
		querySignature: {sign(s.keys.signing(), key, seconds)},
	}, expires
}

// Verify reports whether the query q of a link gives access to key now: nil,
// ErrSignature, or, for a genuine link only, ErrExpired. Parameters that it does not
// know are ignored: chat programs and proxies add theirs.
func (s *Store) Verify(key string, q url.Values) error {
	expires, signature := q[queryExpires], q[querySignature]
	if isRecord(key) || len(expires) != 1 || len(signature) != 1 || !s.genuine(key, expires[0], signature[0]) {
		return fmt.Errorf("storage: verify: %w", ErrSignature)
	}
	seconds, err := strconv.ParseInt(expires[0], 10, 64)
	if err != nil {
		return errors.Join(fmt.Errorf("storage: verify: %w", ErrSignature), err)
	}
	if s.now().Unix() >= seconds {
		return fmt.Errorf("storage: verify: %w", ErrExpired)
	}
	return nil
}

// genuine compares the texts, not what they decode to: base64 writes the last of 32
// bytes in four ways.
func (s *Store) genuine(key, expires, signature string) bool {
	found := false
	for _, secret := range s.keys.verifying() {
		found = hmac.Equal([]byte(sign(secret, key, expires)), []byte(signature)) || found
	}
	return found
}

// sign is the signature for key until expires. No line break is in a genuine expires, so
// that the parts cannot be cut in another way.
func sign(secret []byte, key, expires string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signatureVersion + "\n" + expires + "\n" + key))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
