package service

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Answer is what came of a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Reply decodes what must be one.
func (a Answer) Reply(t *testing.T) Reply {
	t.Helper()
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var r Reply
	Decode(t, a.Body, &r)
	return r
}

// TryAsk sends a request, by default one of Python, with these headers, "Name: value". It
// may be called from any goroutine.
func TryAsk(method, url, body string, headers ...string) (Answer, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "text/x-python")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, raw}, err
}

// Ask is TryAsk for what must have an answer.
func Ask(t *testing.T, method, url, body string, headers ...string) Answer {
	t.Helper()
	a, err := TryAsk(method, url, body, headers...)
	require.NoError(t, err)
	return a
}

// Post sends a body.
func Post(t *testing.T, url, contentType string, body []byte) (int, []byte) {
	t.Helper()
	a := Ask(t, http.MethodPost, url, string(body), "Content-Type: "+contentType)
	return a.Status, a.Body
}

// Get asks for a page.
func Get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	a := Ask(t, http.MethodGet, url, "")
	return a.Status, a.Body
}

// Decode is strict: a field that the test does not know fails it.
func Decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(into), "%s", raw)
}

// Execute runs a request, as JSON, and returns its reply.
func (s *Service) Execute(t *testing.T, request map[string]any) Reply {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	return Ask(t, http.MethodPost, s.URL+"/v1/execute", string(body), "Content-Type: application/json").Reply(t)
}

// ExecuteWarm runs a request in a sandbox that has imported all that it is to.
func (s *Service) ExecuteWarm(t *testing.T, request map[string]any) Reply {
	t.Helper()
	require.Eventually(t, func() bool { return s.Sandboxes(t, "warm") > 0 }, 2*time.Minute, 20*time.Millisecond)
	return s.Execute(t, request)
}

// OpenSession opens a session that lives for so long.
func (s *Service) OpenSession(t *testing.T, ttl time.Duration) (id string) {
	t.Helper()
	return s.OpenSessionWith(t, map[string]any{"ttl": ttl.Seconds()})
}

// OpenSessionWith opens a session by the fields of its request.
func (s *Service) OpenSessionWith(t *testing.T, request map[string]any) (id string) {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	status, raw := Post(t, s.URL+"/v1/sessions", "application/json", body)
	require.Equal(t, http.StatusCreated, status, "%s", raw)
	var session struct{ ID, Language string }
	require.NoError(t, json.Unmarshal(raw, &session))
	require.NotEmpty(t, session.ID)
	if language, named := request["language"]; named {
		require.Equal(t, language, session.Language)
	}
	return session.ID
}

// CloseSession ends a session that is there.
func (s *Service) CloseSession(t *testing.T, id string) {
	t.Helper()
	a := Ask(t, http.MethodDelete, s.URL+"/v1/sessions/"+id, "")
	require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)
}

// sessionPatience is for what takes seconds on a quiet machine.
const sessionPatience = 3 * time.Minute

// TryStep runs code in a session. It may be called from any goroutine.
func (s *Service) TryStep(session, code string) (Answer, error) {
	body, err := json.Marshal(map[string]any{"session": session, "code": code, "timeout": 120})
	if err != nil {
		return Answer{}, err
	}
	client := &http.Client{Timeout: sessionPatience}
	res, err := client.Post(s.URL+"/v1/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, raw}, err
}

// Step requires that code runs well in a session, and returns what it prints.
func (s *Service) Step(t *testing.T, session, code string) string {
	t.Helper()
	a, err := s.TryStep(session, code)
	require.NoError(t, err)
	r := a.Reply(t)
	require.Equal(t, "ok", r.Status, "%s", a.Body)
	return r.Text
}
