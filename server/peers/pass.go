package peers

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"notebox/runner"
)

// ErrSilent is a peer that does not answer.
var ErrSilent = errors.New("the peer does not answer")

// What a caller is told of such a peer, and when to come back: if the peer is gone, that is
// known then.
const (
	SilentText  = "the service that has this session does not answer"
	SilentRetry = 5 * time.Second
)

// browsers are headers that tell of a page in a browser. The service that the browser has
// reached has looked at them.
var browsers = []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Fetch-User"}

// Pass answers a request with what a peer answers. Bodies go through as they come, and
// neither is held. If it returns an error, nothing was answered: it is ErrSilent, or that of reading the
// request's body. An answer that breaks off ends in a panic with http.ErrAbortHandler, as net/http
// has it, so that the client notices.
func (p *Peers) Pass(w http.ResponseWriter, r *http.Request, address string) (err error) {
	body := &watched{ReadCloser: r.Body}
	if r.Body != nil {
		r = r.WithContext(r.Context())
		r.Body = body
	}
	// Or the server would take what is left of the body for itself when the peer begins to answer. A
	// writer that cannot do it is a test's.
	_ = http.NewResponseController(w).EnableFullDuplex()
	own := w.Header().Clone()
	proxy := &httputil.ReverseProxy{
		Transport: p.transport,
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			p.direct(pr.Out, address)
			pr.Out.URL.RawQuery, pr.Out.Host = pr.In.URL.RawQuery, pr.In.Host
			for _, name := range browsers {
				pr.Out.Header.Del(name)
			}
			p.sign(pr.Out, address)
		},
		ModifyResponse: func(res *http.Response) error {
			for name := range own { // this service has said it
				res.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
			if err = body.err(); err != nil {
				return
			}
			p.silent(r.Context(), failed)
			err = errors.Join(ErrSilent, r.Context().Err())
		},
	}
	proxy.ServeHTTP(w, r)
	return err
}

// direct sends a request to an address.
func (p *Peers) direct(r *http.Request, address string) { r.URL.Scheme, r.URL.Host = "http", address }

// silent tells the log of a peer that did not answer, unless the client did not wait.
func (p *Peers) silent(ctx context.Context, err error) {
	if ctx.Err() == nil {
		p.forget()
		p.log.WarnContext(ctx, "a peer does not answer", "error", err)
	}
}

// watched is a body that remembers why it could not be read.
type watched struct {
	io.ReadCloser
	mu     sync.Mutex
	failed error
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.mu.Lock()
		b.failed = err
		b.mu.Unlock()
	}
	return n, err
}

func (b *watched) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

const (
	// askTime is how long a peer may take to answer Ask: from its memory.
	askTime = 2 * time.Second
	// maxAsked bounds such an answer, in bytes: a thousand sessions.
	maxAsked = 1 << 20
	// askedAtOnce bounds how many peers are asked at one time.
	askedAtOnce = 16
)

// Ask sends all other peers a GET of a path, as the caller of r, and returns what those
// answer that answer 200 in time. silent is how many do not, at least: if the peers' addresses
// cannot be found, it is one.
func (p *Peers) Ask(r *http.Request, path string) (answers [][]byte, silent int) {
	others, err := p.others(r.Context())
	if err != nil {
		p.log.WarnContext(r.Context(), "not all peers can be found", "error", err)
		silent++
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	all := make([][]byte, len(others))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i, address := range others {
		asking.Go(func() error {
			answer, err := p.ask(ctx, r, address, path)
			if all[i] = answer; err != nil {
				p.silent(r.Context(), err)
			}
			return nil
		})
	}
	_ = asking.Wait()
	for _, answer := range all {
		if answer == nil {
			silent++
			continue
		}
		answers = append(answers, answer)
	}
	return answers, silent
}

func (p *Peers) ask(ctx context.Context, as *http.Request, address, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	r.Host = as.Host
	for _, name := range []string{"Authorization", "X-Api-Key", "Traceparent"} {
		if values := as.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	p.sign(r, address)
	res, err := p.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAsked+1))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK || len(answer) > maxAsked:
		p.log.LogAttrs(ctx, slog.LevelWarn, "a peer's answer is not used", slog.Int("status", res.StatusCode), slog.Int("bytes", len(answer)))
		return nil, nil
	}
	return answer, nil
}

// Client is an http.Client for calls of a peer in the name of a caller, with whose headers they go.
// base is what links in answers start with.
func (p *Peers) Client(address string, head http.Header, base string) *http.Client {
	return &http.Client{Transport: caller{p, address, head, base}}
}

// caller is the transport of Client.
type caller struct {
	peers   *Peers
	address string
	head    http.Header
	base    string
}

// RoundTrip implements http.RoundTripper.
func (c caller) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	c.peers.direct(r, c.address)
	if u, err := url.Parse(c.base); err == nil && u.Host != "" {
		r.Host = u.Host
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Traceparent"} {
		r.Header.Del(name)
		for _, value := range c.head.Values(name) {
			r.Header.Add(name, value)
		}
	}
	c.peers.sign(r, c.address)
	res, err := c.peers.transport.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		c.peers.silent(r.Context(), err)
		return nil, &runner.Error{Code: runner.CodeUnavailable, Message: SilentText, RetryAfter: SilentRetry, Err: err}
	}
	return res, err
}
