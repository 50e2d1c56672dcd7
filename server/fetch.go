package server

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
	"time"

	"golang.org/x/sync/errgroup"

	"notebox/egress"
	"notebox/executor/problem"
)

// Bounds on fetching the URLs of one request.
const (
	fetchTime      = 60 * time.Second // for all of them together: the caller waits
	fetchAtOnce    = 4                // enough to hide latency, too few to be a weapon
	fetchRedirects = 5                // a shortener, a login-free CDN, and some
	fetchURLBytes  = 8 << 10          // signed URLs of cloud stores have about 2 KiB
	fetchHeader    = 64 << 10         // bytes of a response's headers
)

// refusal is why a URL is not fetched, as its caller is told.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	errFetchScheme   refusal = "only http and https are fetched"
	errFetchDown     refusal = "it redirects from https to http"
	errFetchHops     refusal = "it redirects too often"
	errFetchAddress  refusal = "its host is not at an address that may be fetched from"
	errFetchHost     refusal = "its host was not found"
	errFetchSize     refusal = "it is larger than what may be fetched"
	errFetchEncoding refusal = "the server answered in a content encoding that was not asked for"
)

// fetcher gets files[].url. It dials by egress's rules at every hop, and knows no
// proxy: a proxy would resolve the name by itself.
type fetcher struct {
	dialer egress.Dialer
	client *http.Client
	time   time.Duration // fetchTime, which tests shorten
}

// newFetcher takes the hosts that may be fetched from though they are private.
func newFetcher(allow []string) (*fetcher, error) {
	guard, err := egress.NewGuard(allow)
	if err != nil {
		return nil, fmt.Errorf("fetch-allow: %w", err)
	}
	f := &fetcher{dialer: egress.Dialer{Guard: guard}, time: fetchTime}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            f.dialContext,
			DisableKeepAlives:      true, // no connection outlives its fetch
			DisableCompression:     true, // the file is wanted as it is
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  30 * time.Second,
			MaxResponseHeaderBytes: fetchHeader,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: checkRedirect,
	}
	return f, nil
}

// dialContext is not the Dialer's own method value, which would be that of a copy.
func (f *fetcher) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f.dialer.DialContext(ctx, network, address)
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer") // the URL before may be a secret
	if len(via) > fetchRedirects {
		return errFetchHops
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
		return errFetchDown
	}
	_, err := parseFetchURL(req.URL.String())
	return err
}

func parseFetchURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > fetchURLBytes:
		return nil, refusal("is too long")
	case err != nil:
		return nil, refusal("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errFetchScheme
	case u.Hostname() == "":
		return nil, refusal("has no host")
	case u.User != nil:
		return nil, refusal("must not have a user or password in it")
	}
	return u, nil
}

// nameFromURL is the last component of a URL's path, or empty.
func nameFromURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if base := path.Base(u.Path); base != "." && base != "/" {
		return base
	}
	return ""
}

// checkURLs refuses what need not be tried.
func checkURLs(all *inputs) error {
	for _, in := range all.list {
		if in.url == "" {
			continue
		}
		if _, err := parseFetchURL(in.url); err != nil {
			return problem.Unfit(in.field+".url", "%s", err)
		}
	}
	return nil
}

// fetchAll streams every input that has a URL into the workspace. budget is how
// many bytes they may have together. What goes wrong with a URL is a problem
// that names its field.
func (f *fetcher) fetchAll(ctx context.Context, all *inputs, budget int64, work *workspace) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.time, fmt.Errorf("it took longer than %v", f.time))
	defer cancel()
	var left atomic.Int64
	left.Store(budget)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchAtOnce)
	for _, in := range all.list {
		if in.url == "" {
			continue
		}
		group.Go(func() error {
			err := f.fetch(ctx, in, &left, work)
			if err == nil || errors.Is(err, errWorkspace) {
				return err
			}
			return &problem.Error{Status: http.StatusUnprocessableEntity, Field: in.field + ".url", Text: fetchReason(ctx, err), Cause: withoutURL(err)}
		})
	}
	return group.Wait()
}

func (f *fetcher) fetch(ctx context.Context, in *input, left *atomic.Int64, work *workspace) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "notebox")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch enc := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return refusal(fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	case enc != "" && enc != "identity":
		return errFetchEncoding
	case resp.ContentLength > left.Load():
		return errFetchSize
	}
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		in.title = params["filename"]
	}
	in.path, in.size, err = work.save(&budgetReader{resp.Body, left})
	return err
}

// budgetReader fails when the bytes that all fetches share are used up.
type budgetReader struct {
	io.Reader
	left *atomic.Int64
}

func (b *budgetReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left.Add(int64(-n)) < 0 {
		return 0, errFetchSize
	}
	return n, err
}

// fetchReason is what the caller is told. It gives away nothing of a host that
// may not be fetched from: neither its address nor whether anything listens.
func fetchReason(ctx context.Context, err error) string {
	var refused refusal
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.Is(err, egress.ErrAddress):
		return errFetchAddress.Error()
	case errors.Is(err, egress.ErrHost):
		return errFetchHost.Error()
	case errors.As(err, &certificate):
		return "the server's certificate is not valid"
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	}
	return "the connection to its host failed"
}
