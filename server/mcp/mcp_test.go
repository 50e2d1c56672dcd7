package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"notebox/agent/remote"
	"notebox/client"
)

// elsewhere is a notebox that always gives one answer; asked has what it was asked last.
func elsewhere(t *testing.T, mediaType, answer string) (api API, asked *string) {
	asked = new(string)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.RequestURI
		w.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(ts.Close)
	return API{remote.New(client.Options{BaseURL: ts.URL})}, asked
}

const oneLanguage = `{"environments":[{"language":"python","display_name":"Python 3"}],"limits":{"timeout_seconds":30,"max_timeout_seconds":300}}`

func TestSessionsExpire(t *testing.T) {
	api, _ := elsewhere(t, "application/json", oneLanguage)
	h := NewHandler(func(http.Header, string) (Service, error) { return api, nil })
	h.idle = 50 * time.Millisecond
	defer h.Close()
	send := func(body, id string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if id != "" {
			r.Header.Set(idHeader, id)
		}
		w := httptest.NewRecorder()
		require.NoError(t, h.Serve(w, r, "", "http://localhost"))
		return w
	}
	began := send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, "")
	require.Equal(t, 200, began.Code, "%s", began.Body)
	id := began.Header().Get(idHeader)
	require.NotEmpty(t, id)
	require.Eventually(t, func() bool { return h.owners.all[""].sessions() == 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, http.StatusNotFound, send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, id).Code)
}

// TestOlderNotebox: it has sessions, of which it does not tell.
func TestOlderNotebox(t *testing.T) {
	for answer, want := range map[string]bool{
		oneLanguage: true, strings.Replace(oneLanguage, "300", `300,"sessions":false`, 1): false, strings.Replace(oneLanguage, "300", `300,"sessions":true`, 1): true,
	} {
		api, _ := elsewhere(t, "application/json", answer)
		about, err := api.About(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, about.Sessions, answer)
	}
}

// TestProxyOfANotebox: what it answers in the notebox's place is told.
func TestProxyOfANotebox(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(522)
		_, _ = io.WriteString(w, "the origin timed out")
	}))
	defer ts.Close()
	_, err := NewServer(t.Context(), API{remote.New(client.Options{BaseURL: ts.URL})}, nil, Options{})
	require.EqualError(t, err, "522 status code 522 the origin timed out")
}

// TestPanicsAreNoCalls: a call that panics is not logged as one that went well.
func TestPanicsAreNoCalls(t *testing.T) {
	var log bytes.Buffer
	l := &Local{Log: slog.New(slog.NewTextHandler(&log, nil))} // without an executor
	require.Panics(t, func() { _, _ = l.Run(t.Context(), Execution{Code: "1"}, nil) })
	require.Panics(t, func() { _ = l.CloseSession(t.Context(), "s") })
	require.Empty(t, log.String())
}

func TestNamesOfTools(t *testing.T) {
	for language, want := range map[string]string{
		"python": "run_python", "r": "run_r", "C++": "run_cpp", "C#": "run_csharp", "Octave (GNU)": "run_octave_gnu",
	} {
		require.Equal(t, want, toolName(language))
	}
}

func TestExecutions(t *testing.T) {
	e, err := executionOf("python", json.RawMessage(`{"input":"print(1)","timeout":5}`))
	require.NoError(t, err)
	require.Equal(t, Execution{Code: "print(1)", Language: "python", Timeout: 5}, e)
	e, err = executionOf("r", json.RawMessage(`{"code":"1","session":"s"}`))
	require.NoError(t, err)
	require.Equal(t, Execution{Code: "1", Language: "r", Session: "s"}, e, "another session refuses it")
	for _, language := range []string{"python", "r"} { // and does not run without the session
		_, err = executionOf(language, json.RawMessage(`{"code":"1","session":5}`))
		require.ErrorContains(t, err, "session is a string")
	}
	for _, language := range []string{"python", "r"} {
		e, err = executionOf(language, json.RawMessage(`{"code":"1","dependencies":"a b"}`))
		require.NoError(t, err)
		require.Equal(t, Execution{Code: "1", Language: language, Dependencies: []string{"a", "b"}}, e)
		_, err = executionOf(language, json.RawMessage(`{"code":"1","dependencies":{"a":"1"}}`))
		require.ErrorContains(t, err, "its dependencies are no list of strings")
	}
	for _, language := range []string{"python", "r"} { // null is as good as not given
		e, err = executionOf(language, json.RawMessage(`{"code":"1","session":null,"timeout":null,"dependencies":null,"about":null}`))
		require.NoError(t, err)
		require.Equal(t, Execution{Code: "1", Language: language}, e)
	}
	_, err = executionOf("r", json.RawMessage(`{"input":"1"}`))
	require.ErrorContains(t, err, "code is missing")
}

func TestPathsOfFiles(t *testing.T) {
	api, asked := elsewhere(t, "text/plain", "")
	for path, want := range map[string]string{
		"a/b.txt": "a/b.txt", "/mnt/data/a": "a", "/a": "a", "a b?.txt": "a%20b%3F.txt", "../x": "%2E%2E/x", "": "",
	} {
		file, err := api.ReadFile(t.Context(), "s/1", path)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.Equal(t, "/v1/sessions/s%2F1/files/"+want, *asked)
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ desc, stream, reply, failure string }{
		{"to its end", "event: output\ndata: {\"type\":\"stream\",\"text\":\"a\"}\n\n: alive\n\nevent: done\ndata: {\"id\":\"x\"}\n\n", `{"id":"x"}`, ""},
		{"with packages", "event: install\ndata: {\"text\":\"a\"}\n\nevent: done\ndata: {\"id\":\"x\"}\n\n", `{"id":"x"}`, ""},
		{"an error", "event: error\ndata: {\"status\":503,\"detail\":\"full\"}\n\n", "", "full"},
		{"cut off", "event: done\ndata: {", "", "notebox's answer cannot be read: unexpected end of JSON input"},
		{"no events", "hello", "", "notebox's answer cannot be read: the events broke off"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			api, _ := elsewhere(t, "text/event-stream", c.stream)
			said := ""
			reply, err := api.Run(context.Background(), Execution{Code: "x"}, func(text string) { said += text })
			if c.failure != "" {
				require.EqualError(t, err, c.failure)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.reply, string(reply))
			require.Equal(t, "a", said)
		})
	}
}

func TestRefusalsAreToldToTheModel(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&Refusal{404, "there is nothing at this address"}, "create_session opens a session"},
		{&Refusal{410, "the session is over: idle"}, "create_session opens another"},
		{&Refusal{429, "too many runs"}, "too many runs"},
		{errors.New("not reached"), "not reached"},
	} {
		r, err := failed(context.Background(), c.err)
		require.NoError(t, err)
		require.True(t, r.IsError)
		require.Contains(t, r.Content[0].(*sdk.TextContent).Text, c.want)
	}
}

func FuzzExecutionOf(f *testing.F) {
	f.Add("python", `{"code":"x"}`)
	f.Add("r", `{"code":["x"],"timeout":"a"}`)
	f.Fuzz(func(t *testing.T, language, raw string) {
		e, err := executionOf(language, json.RawMessage(raw))
		if err == nil {
			require.NotEmpty(t, strings.TrimSpace(e.Code))
		}
	})
}
