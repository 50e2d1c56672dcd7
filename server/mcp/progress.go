package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// progressEvery is how often a client is told that code still runs: often enough
	// for one that ends calls of which it hears nothing.
	progressEvery = time.Second
	// maxSaid bounds what is repeated of the program's output, in bytes.
	maxSaid = 200
)

// progress tells a client that asked for it how long its code has run, and what it said
// last.
type progress struct {
	stop func()
	done sync.WaitGroup

	mu   sync.Mutex
	last string
}

func newProgress(ctx context.Context, req *sdk.CallToolRequest) *progress {
	p := &progress{stop: func() {}}
	token := req.Params.GetProgressToken()
	if token == nil {
		return p
	}
	ctx, p.stop = context.WithCancel(ctx)
	began := time.Now()
	p.done.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for at := 0.0; ; {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that is gone asks no more
				ProgressToken: token, Progress: at, Message: p.message(at),
			})
			select {
			case <-tick.C:
				at = max(at+0.001, time.Since(began).Seconds()) // it must rise
			case <-ctx.Done():
				return
			}
		}
	})
	return p
}

func (p *progress) message(at float64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("running for %.0f s", at)
	if p.last != "" {
		text += ": " + p.last
	}
	return text
}

// said takes text that the program put out.
func (p *progress) said(text string) {
	text = strings.TrimRight(text, "\n")
	text = text[strings.LastIndexByte(text, '\n')+1:]
	if len(text) > maxSaid {
		text = text[:maxSaid]
	}
	if text = strings.TrimSpace(strings.ToValidUTF8(text, "")); text != "" {
		p.mu.Lock()
		p.last = text
		p.mu.Unlock()
	}
}

// end returns when nothing more is sent.
func (p *progress) end() {
	p.stop()
	p.done.Wait()
}
