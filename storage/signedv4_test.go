package storage_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"notebox/storage/storagetest"
)

// verifyV4 checks a link as Google does, which fake-gcs-server does not: the signature by
// the account's public key over the method, path, query and host (without a port, which
// Google's has not), and the time. See
// https://cloud.google.com/storage/docs/authentication/signatures.
func verifyV4(key *rsa.PublicKey, link string, now time.Time) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	q := u.Query()
	for name, values := range q {
		if len(values) != 1 {
			return fmt.Errorf("%s: %d values", name, len(values))
		}
	}
	signature, err := hex.DecodeString(q.Get("X-Goog-Signature"))
	if err != nil {
		return err
	}
	began, err := time.Parse("20060102T150405Z", q.Get("X-Goog-Date"))
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(q.Get("X-Goog-Expires"))
	if err != nil || seconds <= 0 || seconds > 604800 {
		return errors.New("X-Goog-Expires is out of range")
	}
	scope := began.Format("20060102") + "/auto/storage/goog4_request"
	if q.Get("X-Goog-Algorithm") != "GOOG4-RSA-SHA256" || q.Get("X-Goog-SignedHeaders") != "host" ||
		q.Get("X-Goog-Credential") != storagetest.GCSAccount+"/"+scope {
		return errors.New("another algorithm, account or scope, or headers that a plain client does not send")
	}
	q.Del("X-Goog-Signature")
	canonical := strings.Join([]string{
		"GET", u.EscapedPath(), strings.ReplaceAll(q.Encode(), "+", "%20"), "host:" + u.Hostname(), "", "host", "UNSIGNED-PAYLOAD",
	}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{"GOOG4-RSA-SHA256", q.Get("X-Goog-Date"), scope, hex.EncodeToString(sum[:])}, "\n")
	hash := sha256.Sum256([]byte(text))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], signature); err != nil {
		return err
	}
	if now.Before(began.Add(-15*time.Minute)) || !now.Before(began.Add(time.Duration(seconds)*time.Second)) {
		return errors.New("expired")
	}
	return nil
}
