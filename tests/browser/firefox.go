package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// Keys as WebDriver names them.
const (
	WebDriverEnter  = "\uE007"
	WebDriverCtrl   = "\uE009"
	WebDriverEscape = "\uE00C"
)

// Firefox is a tab of a headless Firefox, which is driven by WebDriver BiDi
// (https://w3c.github.io/webdriver-bidi/). It does little: what is tried in it is whether the
// page works there at all.
type Firefox struct {
	t       *testing.T
	conn    *websocket.Conn
	context string
	calls   int
	errors  []string
}

var listens = regexp.MustCompile(`WebDriver BiDi listening on (ws://\S+)`)

// NewFirefox starts one.
func NewFirefox(t *testing.T) *Firefox {
	t.Helper()
	path, err := exec.Command(filepath.Join(root(t), "scripts/firefox.sh")).Output()
	require.NoError(t, err, "scripts/firefox.sh finds no browser and could not install one: %s", stderrOf(err))
	ctx, cancel := context.WithTimeout(t.Context(), visitTime)
	home := t.TempDir()
	cmd := exec.CommandContext(ctx, strings.TrimSpace(string(path)), "--headless", "--no-remote", "--profile", home, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	})
	f := &Firefox{t: t}
	lines := bufio.NewScanner(said)
	for f.conn == nil && lines.Scan() {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			f.conn, _, err = websocket.DefaultDialer.DialContext(ctx, found[1]+"/session", nil)
			require.NoError(t, err)
		}
	}
	require.NotNil(t, f.conn, "Firefox does not listen")
	go func() {
		for lines.Scan() { // else it would wait for somebody to read
		}
	}()
	t.Cleanup(func() { _ = f.conn.Close() })
	f.call("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	f.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	var tree struct{ Contexts []struct{ Context string } }
	f.call("browsingContext.getTree", map[string]any{}, &tree)
	require.Len(t, tree.Contexts, 1)
	f.context = tree.Contexts[0].Context
	return f
}

// call sends a command and waits for its result.
func (f *Firefox) call(method string, params map[string]any, result any) {
	f.t.Helper()
	f.calls++
	require.NoError(f.t, f.conn.SetReadDeadline(time.Now().Add(visitTime)))
	require.NoError(f.t, f.conn.WriteJSON(map[string]any{"id": f.calls, "method": method, "params": params}))
	for {
		var message struct {
			ID                    int
			Method, Type, Message string
			Params                struct{ Level, Text string }
			Result                json.RawMessage
		}
		require.NoError(f.t, f.conn.ReadJSON(&message))
		if message.Method == "log.entryAdded" && (message.Params.Level == "error" || message.Params.Level == "warn") {
			f.errors = append(f.errors, message.Params.Text)
		}
		if message.ID != f.calls {
			continue
		}
		require.NotEqual(f.t, "error", message.Type, "%s: %s", method, message.Message)
		if result != nil {
			require.NoError(f.t, json.Unmarshal(message.Result, result))
		}
		return
	}
}

// Open goes to an address.
func (f *Firefox) Open(url string) {
	f.t.Helper()
	f.call("browsingContext.navigate", map[string]any{"context": f.context, "url": url, "wait": "complete"}, nil)
}

// Size has the page be of so many pixels.
func (f *Firefox) Size(width, height int) {
	f.t.Helper()
	f.call("browsingContext.setViewport", map[string]any{"context": f.context, "viewport": map[string]int{"width": width, "height": height}}, nil)
}

// Text returns an expression of the page, as text.
func (f *Firefox) Text(expression string) string {
	f.t.Helper()
	var answer struct{ Result struct{ Value any } }
	f.call("script.evaluate", map[string]any{"expression": "String(" + expression + ")", "target": map[string]any{"context": f.context}, "awaitPromise": false}, &answer)
	text, _ := answer.Result.Value.(string)
	return text
}

// Until waits for an expression in the page to be true.
func (f *Firefox) Until(expression string) {
	f.t.Helper()
	const most = 30 * time.Second
	for end := time.Now().Add(most); f.Text(expression) != "true"; time.Sleep(100 * time.Millisecond) {
		require.True(f.t, time.Now().Before(end), "%s; the page: %s", expression, f.Text("document.body.innerText"))
	}
}

// Keys presses keys, one after another; those of one entry together.
func (f *Firefox) Keys(chords ...[]string) {
	f.t.Helper()
	actions := []map[string]string{}
	for _, chord := range chords {
		for _, key := range chord {
			actions = append(actions, map[string]string{"type": "keyDown", "value": key})
		}
		for i := range chord {
			actions = append(actions, map[string]string{"type": "keyUp", "value": chord[len(chord)-1-i]})
		}
	}
	f.call("input.performActions", map[string]any{"context": f.context, "actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

// Complaints are the errors and warnings of the console so far.
func (f *Firefox) Complaints() []string { return f.errors }
