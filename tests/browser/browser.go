// Package browser opens pages in a headless Chromium, for tests: it clicks, waits, and notes all
// that a page asks for and complains of. Firefox does less, for whether a page works there.
// scripts/chromium.sh and scripts/firefox.sh say where a browser is, and install it.
package browser

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// visitTime is what a whole visit of a page may take on a machine under load.
const visitTime = 4 * time.Minute

// Browser is a tab of a headless browser, and all that its pages asked for and complained of.
type Browser struct {
	T   *testing.T
	Ctx context.Context // chromedp's

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// New starts a browser with a window of these pixels; 0 is that of a desk.
func New(t *testing.T, width, height int) *Browser {
	t.Helper()
	out, err := exec.Command(filepath.Join(root(t), "scripts/chromium.sh")).Output()
	require.NoError(t, err, "scripts/chromium.sh finds no browser and could not install one: %s", stderrOf(err))
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(out))),
		chromedp.WindowSize(cmp.Or(width, 1400), cmp.Or(height, 1000)),
		// As browsers of people have it: a frame with another origin has a process of its own.
		chromedp.Flag("disable-features", "Translate"),
		chromedp.Flag("enable-features", "IsolateSandboxedIframes"),
		chromedp.Flag("site-per-process", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium does not sandbox for root; the pages are our own
	}
	deadline, cancel := context.WithTimeout(t.Context(), visitTime)
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(deadline, options...)
	t.Cleanup(cancel)
	b := &Browser{T: t}
	b.Ctx, cancel = chromedp.NewContext(allocator, chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	b.Do()
	b.watchFrames()
	return b
}

func stderrOf(err error) string {
	if failed, ok := err.(*exec.ExitError); ok {
		return string(failed.Stderr)
	}
	return ""
}

// note remembers every request, and every error and warning of the console.
func (b *Browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.complaints = append(b.complaints, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.complaints = append(b.complaints, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text := string(e.Type)
			for _, arg := range e.Args {
				text += " " + string(arg.Value) + arg.Description
			}
			b.complaints = append(b.complaints, text)
		}
	}
}

// Do takes actions one after another.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	require.NoError(b.T, chromedp.Do(b.Ctx, actions...), "the browser's console: %q", b.Complaints())
}

// Until waits for an expression in the page to be true, also if the browser is on its way to
// another page.
func (b *Browser) Until(expression string) {
	b.T.Helper()
	poll := chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(visitTime), chromedp.WithPollingInterval(100*time.Millisecond))
	for {
		err := chromedp.Do(b.Ctx, poll)
		if left := (*cdproto.Error)(nil); errors.As(err, &left) && left.Code == pageLeft {
			continue
		}
		require.NoError(b.T, err, "the browser's console: %q", b.Complaints())
		return
	}
}

// pageLeft is the code of the protocol's error "Inspected target navigated or closed".
const pageLeft = -32000

// Eval returns the value of an expression in the page.
func Eval[T any](b *Browser, expression string) T {
	b.T.Helper()
	value, err := chromedp.Run(b.Ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.T, err, expression)
	return value
}

// Complaints are the errors and warnings of the console so far.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.complaints...)
}

// Requests are the addresses that the pages, and frames in them, asked for so far, also those
// that the browser has refused.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.requests...)
}

// RequireQuiet checks that the pages had nothing to complain of, and asked only the service
// that they are of.
func (b *Browser) RequireQuiet(origin string) {
	b.T.Helper()
	require.Empty(b.T, b.Complaints(), "errors and warnings in the browser's console")
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b.T, b.requests)
	for _, request := range b.requests {
		u, err := url.Parse(request)
		require.NoError(b.T, err)
		require.True(b.T, u.Scheme == "data" || u.Scheme == "blob" || u.Scheme+"://"+u.Host == origin, "asked for %s", request)
	}
}

// Shoot writes a picture of the page below NOTEBOX_TEST_SCREENSHOTS, for a person to look at.
func (b *Browser) Shoot(name string) {
	b.T.Helper()
	folder := os.Getenv("NOTEBOX_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
	require.NoError(b.T, err)
	require.NoError(b.T, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600))
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		require.NotEqual(t, "/", folder, "no go.mod above the test")
		folder = filepath.Dir(folder)
	}
}
