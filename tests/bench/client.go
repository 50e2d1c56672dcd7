package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// requestTimeout is above notebox's own: queue, start and run.
const requestTimeout = 3 * time.Minute

// executePath is where code is sent to.
const executePath = "/v1/execute"

// hit is one run as its caller sees it.
type hit struct {
	end     time.Duration // since the begin of the load
	latency time.Duration
	refused bool // by a 429 or 503
}

// caller sends one case's code to one service, as fast as replies come.
type caller struct {
	c        benchCase
	client   *http.Client
	targeter vegeta.Targeter
}

// newCaller sends to the session, or to none if that is "".
func newCaller(url string, c benchCase, session string) (*caller, error) {
	request := map[string]any{"code": c.code}
	if c.language != "" {
		request["language"] = c.language
	}
	if c.dependencies != nil {
		request["dependencies"] = c.dependencies
	}
	if session != "" {
		request["session"] = session
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	// No proxy, and each caller keeps its connection.
	connections := &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}
	return &caller{
		c: c,
		client: &http.Client{
			Timeout:   requestTimeout,
			Transport: &fetching{RoundTripper: connections, file: c.file},
		},
		targeter: vegeta.NewStaticTargeter(vegeta.Target{
			Method: http.MethodPost,
			URL:    url + executePath,
			Body:   body,
			Header: http.Header{"Content-Type": {"application/json"}},
		}),
	}, nil
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// once sends one run and waits for its whole reply.
func (c *caller) once(ctx context.Context) (time.Duration, error) {
	hits, err := c.hits(ctx, 1, someHits(1), 0)
	if err != nil {
		return 0, err
	}
	if len(hits) != 1 || hits[0].refused {
		return 0, fmt.Errorf("%s: refused", c.c.name)
	}
	return hits[0].latency, nil
}

// someHits is a pacer that stops after so many, and does not wait between them.
type someHits uint64

// Pace implements vegeta.Pacer.
func (n someHits) Pace(_ time.Duration, hits uint64) (wait time.Duration, stop bool) {
	return 0, hits >= uint64(n)
}

// Rate implements vegeta.Pacer.
func (someHits) Rate(time.Duration) float64 { return 0 }

// attack has as many runs under way for d as there are callers: the next one of
// each begins when it has the reply to the one before.
func (c *caller) attack(ctx context.Context, callers int, d time.Duration) ([]hit, error) {
	return c.hits(ctx, callers, vegeta.Rate{Freq: 0, Per: time.Second}, d)
}

func (c *caller) hits(ctx context.Context, callers int, pacer vegeta.Pacer, d time.Duration) ([]hit, error) {
	attacker := vegeta.NewAttacker(vegeta.Client(c.client), vegeta.Workers(uint64(callers)), vegeta.MaxWorkers(uint64(callers)))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	var (
		hits   []hit
		failed error
		begun  = time.Now()
	)
	for result := range attacker.Attack(c.targeter, pacer, d, "") {
		h, err := c.judge(result)
		h.end = result.End().Sub(begun)
		if err != nil && failed == nil {
			failed = err
			attacker.Stop()
		}
		hits = append(hits, h)
	}
	return hits, errors.Join(failed, ctx.Err())
}

func (c *caller) judge(r *vegeta.Result) (hit, error) {
	h := hit{latency: r.Latency}
	switch {
	case r.Code == http.StatusTooManyRequests, r.Code == http.StatusServiceUnavailable:
		h.refused = true
		return h, nil
	case r.Error != "":
		return h, fmt.Errorf("%s: %s: %.500s", c.c.name, r.Error, r.Body)
	}
	return h, c.c.checkReply(r.Body)
}

// fetching is a transport whose request for a run ends when the run's file has
// been fetched by its link: "returned" means that the caller has it.
type fetching struct {
	http.RoundTripper
	file *expectedFile // nil: nothing is fetched
}

// CloseIdleConnections passes on what http.Client asks of its transport.
func (f *fetching) CloseIdleConnections() {
	if t, ok := f.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (f *fetching) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := f.RoundTripper.RoundTrip(req)
	if err != nil || f.file == nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	raw, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("the reply: %w", err)
	}
	for _, file := range r.Files {
		if err := f.fetch(req.Context(), file.URL); err != nil {
			return nil, err
		}
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	return res, nil
}

func (f *fetching) fetch(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := f.RoundTripper.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return f.file.compare(res.Body)
}
