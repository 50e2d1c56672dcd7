package server

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browserTime is what a whole visit of a page may take on a machine under load.
const browserTime = 4 * time.Minute

// chromium is a tab of a headless browser, and all that its pages asked for and complained of.
type chromium struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// newChromium starts a browser; scripts/chromium.sh says where one is, and installs it.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	out, err := exec.Command("../scripts/chromium.sh").Output()
	require.NoError(t, err, "scripts/chromium.sh finds no browser and could not install one: %s", stderrOf(err))
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(out))),
		chromedp.WindowSize(1400, 1000),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium does not sandbox for root; the pages are our own
	}
	deadline, cancel := context.WithTimeout(t.Context(), browserTime)
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(deadline, options...)
	t.Cleanup(cancel)
	b := &chromium{t: t}
	b.ctx, cancel = chromedp.NewContext(allocator, chromedp.WithListener(b.note))
	t.Cleanup(cancel)
	b.do()
	return b
}

func stderrOf(err error) string {
	if failed, ok := err.(*exec.ExitError); ok {
		return string(failed.Stderr)
	}
	return ""
}

// note remembers every request, and every error and warning of the console.
func (b *chromium) note(event any) {
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

func (b *chromium) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...), "the browser's console: %q", b.complained())
}

// until waits for an expression in the page to be true.
func (b *chromium) until(expression string) {
	b.t.Helper()
	b.do(chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(browserTime), chromedp.WithPollingInterval(100*time.Millisecond)))
}

// eval returns the value of an expression in the page.
func eval[T any](b *chromium, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

func (b *chromium) complained() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.complaints...)
}

// requireQuiet checks that the pages had nothing to complain of, and asked only the service
// that they are of.
func (b *chromium) requireQuiet(origin string) {
	b.t.Helper()
	require.Empty(b.t, b.complained(), "errors and warnings in the browser's console")
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b.t, b.requests)
	for _, request := range b.requests {
		u, err := url.Parse(request)
		require.NoError(b.t, err)
		require.True(b.t, u.Scheme == "data" || u.Scheme == "blob" || u.Scheme+"://"+u.Host == origin, "asked for %s", request)
	}
}

// shoot writes a picture of the page below NOTEBOX_TEST_SCREENSHOTS, for a person to look at.
func (b *chromium) shoot(name string) {
	b.t.Helper()
	folder := os.Getenv("NOTEBOX_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600))
}
