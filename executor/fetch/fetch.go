// Package fetch gets files by their URLs, from public hosts alone.
package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"sync/atomic"
	"syscall"
	"time"

	"notebox/egress"
	"notebox/executor/problem"
)

// Bounds on fetching the URLs of one request.
const (
	DefaultTime  = 60 * time.Second // for all of them together: the caller waits
	AtOnce       = 4                // enough to hide latency, too few to be a weapon
	MaxRedirects = 5                // a shortener, a login-free CDN, and some
	MaxURLBytes  = 8 << 10          // signed URLs of cloud stores have about 2 KiB
	maxHeader    = 64 << 10         // bytes of a response's headers
)

// Refusal is why a URL is not fetched, as its caller is told.
type Refusal string

func (r Refusal) Error() string { return string(r) }

const (
	ErrScheme   Refusal = "only http and https are fetched"
	ErrDown     Refusal = "it redirects from https to http"
	ErrHops     Refusal = "it redirects too often"
	ErrAddress  Refusal = "its host is not at an address that may be fetched from"
	ErrHost     Refusal = "its host was not found"
	ErrSize     Refusal = "it is larger than what may be fetched"
	ErrEncoding Refusal = "the server answered in a content encoding that was not asked for"
)

// Fetcher gets files[].url. It dials by egress's rules at every hop, and knows no
// proxy: a proxy would resolve the name by itself.
type Fetcher struct {
	Dialer egress.Dialer
	Client *http.Client
	Time   time.Duration // DefaultTime, which tests shorten
}

// New takes the hosts that may be fetched from though they are private.
func New(allow []string) (*Fetcher, error) {
	guard, err := egress.NewGuard(allow)
	if err != nil {
		return nil, fmt.Errorf("fetch-allow: %w", err)
	}
	f := &Fetcher{Dialer: egress.Dialer{Guard: guard}, Time: DefaultTime}
	f.Client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            f.dialContext,
			DisableKeepAlives:      true, // no connection outlives its fetch
			DisableCompression:     true, // the file is wanted as it is
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  30 * time.Second,
			MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: checkRedirect,
	}
	return f, nil
}

// dialContext is not the Dialer's own method value, which would be that of a copy.
func (f *Fetcher) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f.Dialer.DialContext(ctx, network, address)
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer") // the URL before may be a secret
	if len(via) > MaxRedirects {
		return ErrHops
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
		return ErrDown
	}
	_, err := Parse(req.URL.String())
	return err
}

// Parse refuses what is no URL to fetch.
func Parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > MaxURLBytes:
		return nil, Refusal("is too long")
	case err != nil:
		return nil, Refusal("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, ErrScheme
	case u.Hostname() == "":
		return nil, Refusal("has no host")
	case u.User != nil:
		return nil, Refusal("must not have a user or password in it")
	}
	return u, nil
}

// NameOf is the last component of a URL's path, or empty.
func NameOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if base := path.Base(u.Path); base != "." && base != "/" {
		return base
	}
	return ""
}

// Get streams what is at a URL to save. left are the bytes that it may have, and others
// with it; title is what the server calls the file, which is hostile and may be empty.
func (f *Fetcher) Get(ctx context.Context, from string, left *atomic.Int64, save func(io.Reader) error) (title string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "notebox")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := f.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch enc := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return "", Refusal(fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	case enc != "" && enc != "identity":
		return "", ErrEncoding
	case resp.ContentLength > left.Load():
		return "", ErrSize
	}
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		title = params["filename"]
	}
	return title, save(&budgetReader{resp.Body, left})
}

// budgetReader fails when the bytes that all fetches share are used up.
type budgetReader struct {
	io.Reader
	left *atomic.Int64
}

func (b *budgetReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left.Add(int64(-n)) < 0 {
		return 0, ErrSize
	}
	return n, err
}

// Reason is what the caller is told. It gives away nothing of a host that
// may not be fetched from: neither its address nor whether anything listens.
func Reason(ctx context.Context, err error) string {
	var refused Refusal
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.Is(err, egress.ErrAddress):
		return ErrAddress.Error()
	case errors.Is(err, egress.ErrHost):
		return ErrHost.Error()
	case errors.As(err, &certificate):
		return "the server's certificate is not valid"
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	}
	return "the connection to its host failed"
}

// WithoutURL is an error of fetching a file, whose address is the caller's data
// and may be a signed one.
func WithoutURL(err error) error {
	var refused Refusal
	var lookup *net.DNSError
	var system syscall.Errno
	text := ""
	switch {
	case errors.As(err, &refused):
		text = refused.Error()
	case errors.As(err, &lookup):
		text = "lookup: " + lookup.Err
	case errors.As(err, &system):
		text = system.Error()
	default:
		text = fmt.Sprintf("an error of type %T", problem.Leaf(err))
	}
	return &problem.Redacted{Text: text, Whole: err}
}
