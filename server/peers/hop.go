package peers

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Header is of a request that a peer has passed on: "TIME NONCE MAC", with the time in
// milliseconds since 1970. The MAC is over both, the address that the request goes to, its
// method, host, path with query, and the caller's key: who sees one header can send no other
// request with it.
const Header = "Notebox-Peer"

// hopLife is how long a header is good: what clocks may differ by, and a connection may take.
// A header counts once in that time.
const hopLife = 30 * time.Second

// ErrForged is a header that no peer has made, or that was used before, or is too old.
var ErrForged = errors.New("the request does not come from a peer, or comes a second time")

// sign marks a request to an address as passed on.
func (p *Peers) sign(r *http.Request, address string) {
	at, nonce := strconv.FormatInt(p.now().UnixMilli(), 10), rand.Text()
	r.Header.Set(Header, at+" "+nonce+" "+p.hop(at, nonce, address, r.Method, r.Host, r.URL.RequestURI(), r.Header))
}

func (p *Peers) hop(at, nonce, address, method, host, uri string, head http.Header) string {
	return hex.EncodeToString(p.mac("hop", at, nonce, address, method, host, uri, head.Get("Authorization"), head.Get("X-Api-Key")))
}

// Arrived reports whether a request was passed on by a peer. It may be asked once for each
// request. The error is ErrForged.
func (p *Peers) Arrived(r *http.Request) (bool, error) {
	values := r.Header.Values(Header)
	if len(values) == 0 {
		return false, nil
	}
	parts := strings.Split(values[0], " ")
	if len(values) > 1 || len(parts) != 3 {
		return false, ErrForged
	}
	at, nonce, mac := parts[0], parts[1], parts[2]
	if !hmac.Equal([]byte(mac), []byte(p.hop(at, nonce, p.own, r.Method, r.Host, r.RequestURI, r.Header))) {
		return false, ErrForged
	}
	sent, err := strconv.ParseInt(at, 10, 64)
	if err != nil || p.now().Sub(time.UnixMilli(sent)).Abs() >= hopLife || !p.seen.first(nonce, p.now()) {
		return false, ErrForged
	}
	return true, nil
}

// seen are the nonces of headers that were good, all of the last two spans of 2*hopLife: a
// header of a clock ahead is good for so long. Only peers add to it.
type seen struct {
	mu          sync.Mutex
	since       time.Time
	last, older map[string]bool
}

// first reports whether a nonce has not been seen.
func (s *seen) first(nonce string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || now.Sub(s.since).Abs() >= 2*hopLife {
		s.older, s.last, s.since = s.last, map[string]bool{}, now
	}
	if s.last[nonce] || s.older[nonce] {
		return false
	}
	s.last[nonce] = true
	return true
}
