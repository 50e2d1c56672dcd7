package tracing_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/server"
	"notebox/storage"
)

// canary is planted wherever a caller or its code can put a text.
const canary = "canary7f3a"

// brokenStore takes some objects and quotes their keys in its errors, as stores do.
type brokenStore struct{ server.Store }

func (s brokenStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	if strings.Contains(key, canary+"-panic") {
		panic("the store has a bug: " + key)
	}
	if strings.Contains(key, canary+"-unstored") {
		return storage.Object{}, fmt.Errorf("put %q: open %s: %w", key, key, errors.New("no space for "+key))
	}
	return s.Store.Put(ctx, key, content, name)
}

func (s brokenStore) Get(ctx context.Context, key string) (*storage.Reader, error) {
	if strings.Contains(key, canary+".csv") {
		return nil, fmt.Errorf("get %q: %w", key, io.ErrUnexpectedEOF)
	}
	return s.Store.Get(ctx, key)
}

// TestNothingOfACallersIsSeen plants a canary in all that a caller sends and its
// code makes, in good requests, bad ones, and ones that fail, and looks for it in
// what the service shows to those who watch it.
func TestNothingOfACallersIsSeen(t *testing.T) {
	tracer, spans := recorded(t)
	const key = "key-" + canary
	s := newService(t, tracer, func(c *server.Config) {
		keys, err := access.New([]access.Entry{access.PlainEntry(key)}, access.Options{})
		require.NoError(t, err)
		c.Keys, c.Store = keys, brokenStore{c.Store}
	})
	code := "print('" + canary + "')"
	s.host.On(code, func(k *runnertest.Kernel) {
		k.Print(canary + k.Env["SECRET"] + "\n")
		k.Files[canary+".csv"] = canary
		k.Files["folder/"+canary+"-unstored"] = canary
		k.Special(canary+"-link", "symbolic link")
		k.Raise(canary+"Error", canary)
	})
	dies := "die('" + canary + "')"
	s.host.On(dies, func(k *runnertest.Kernel) { k.Die(runner.StatusKilled) })

	panics := "panic('" + canary + "')"
	s.host.On(panics, func(k *runnertest.Kernel) { k.Files[canary+"-panic"] = canary })

	elsewhere := httptest.NewServer(http.NotFoundHandler()) // whose address is not to be fetched from
	defer elsewhere.Close()
	request := func(code string, more map[string]any) string {
		fields := map[string]any{
			"code": code, "env": map[string]string{"SECRET": canary, "NAME_" + canary: "x"},
			"files": []map[string]string{{"name": canary + ".in", "content": base64.StdEncoding.EncodeToString([]byte(canary))}},
		}
		for name, value := range more {
			fields[name] = value
		}
		raw, err := json.Marshal(fields)
		require.NoError(t, err)
		return string(raw)
	}
	fetch := func(address string) map[string]any {
		return map[string]any{"files": []map[string]string{{"name": "a", "url": address}}}
	}
	headers := []string{asJSON, mediaJSON, "Authorization", "Bearer " + key, "X-Request-Id", canary, "User-Agent", canary,
		"traceparent", traceparent, "tracestate", "vendor=" + canary, "baggage", "user=" + canary, "Cookie", canary}
	var link string
	for _, c := range []struct {
		desc, method, path, body string
		headers                  []string
		status                   int
	}{
		{"a run", "POST", "/v1/execute?images=url", request(code, nil), nil, 200},
		{"streamed", "POST", "/v1/execute", request(code, nil), []string{"Accept", "text/event-stream"}, 200},
		{"idempotent", "POST", "/v1/execute", request(code, nil), []string{"Idempotency-Key", canary}, 200},
		{"asynchronous", "POST", "/v1/execute", request(code, nil), []string{"Prefer", "respond-async"}, 202},
		{"a kernel that dies", "POST", "/v1/execute", request(dies, nil), nil, 200},
		{"a query", "POST", "/v1/execute?q=" + canary, request(code, nil), nil, 400},
		{"a panic of ours", "POST", "/v1/execute", request(panics, nil), nil, 500},
		{"malformed", "POST", "/v1/execute", `{"` + canary + `": ` + canary, nil, 400},
		{"another language", "POST", "/v1/execute", request(code, map[string]any{"language": canary}), nil, 422},
		{"no such host", "POST", "/v1/execute", request(code, fetch("http://"+canary+".invalid/"+canary+"?sig="+canary)), nil, 422},
		{"an address that is not fetched", "POST", "/v1/execute", request(code, fetch(elsewhere.URL+"/"+canary+"?sig="+canary)), nil, 422},
		{"the same, to be kept", "POST", "/v1/execute", request(code, fetch(elsewhere.URL+"/"+canary+"?sig="+canary)), []string{"Idempotency-Key", canary + "2"}, 422},
		{"another key", "POST", "/v1/execute", request(code, nil), []string{"Authorization", "Bearer wrong-" + canary}, 401},
		{"no such route", "GET", "/v1/" + canary + "?" + canary, "", nil, 404},
		{"no such method", "PATCH", "/v1/execute", canary, nil, 405},
		{"a method of one's own", strings.ToUpper(canary), "/v1/execute", "", nil, 405},
		{"a link that was forged", "GET", "/v1/files/runs/" + canary + "?signature=" + canary, "", nil, 403},
		{"no such execution", "GET", "/v1/executions/run_" + canary, "", nil, 404},
		{"readiness", "GET", "/readyz?" + canary, "", nil, 200},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			status, body := s.ask(c.method, c.path, c.body, append(headers, c.headers...)...)
			require.Equal(t, c.status, status, body)
			if c.desc == "a run" {
				var reply struct{ Files []struct{ URL string } }
				require.NoError(t, json.Unmarshal([]byte(body), &reply))
				require.Len(t, reply.Files, 2)
				require.Empty(t, reply.Files[1].URL, "it is not stored")
				link = strings.TrimPrefix(reply.Files[0].URL, s.url)
			}
		})
	}
	s.t = t
	status, _ := s.ask(http.MethodGet, link, "")
	require.Equal(t, http.StatusInternalServerError, status)
	_, signature, _ := strings.Cut(link, "signature=")
	signature, _, _ = strings.Cut(signature, "&")
	require.NotEmpty(t, signature)

	await(t, spans, "other /v1/execute")
	require.Eventually(t, func() bool { // the one that nobody waited for, too
		runs := 0
		for _, span := range spans.GetSpans() {
			if span.Name == "runner.Run" {
				runs++
			}
		}
		return runs == 6
	}, spanPatience, time.Millisecond)
	status, shown := s.ask(http.MethodGet, "/metrics", "", "X-API-Key", key)
	require.Equal(t, http.StatusOK, status)
	traced, err := json.Marshal(spans.GetSpans())
	require.NoError(t, err)
	logged := s.log.String()
	for where, text := range map[string]string{"the log": logged, "/metrics": shown, "the traces": string(traced)} {
		for _, secret := range []string{canary, strings.ToUpper(canary), signature, url.QueryEscape(key), base64.StdEncoding.EncodeToString([]byte(canary))} {
			require.NotContains(t, text, secret, where)
		}
	}
	// The test has looked at what it means to look at.
	require.Contains(t, logged, `"msg":"not stored"`)
	require.Contains(t, logged, `"msg":"request failed"`)
	require.Contains(t, logged, "panic: a value of type string")
	require.Contains(t, shown, `notebox_refusals_total{reason="auth"} 1`)
	require.Contains(t, string(traced), "runner.collect")
	requireRunIDs(t, logged)
}

// requireRunIDs: whatever is logged of a run names it, and its trace.
func requireRunIDs(t *testing.T, logged string) {
	t.Helper()
	of := map[string]int{}
	for line := range strings.Lines(logged) {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry), "each line is one object: %s", line)
		switch entry["msg"] {
		case "run", "not stored", "a run failed":
			require.Regexp(t, `^run_`, entry["run"], line)
			require.Equal(t, callersTrace, entry["trace_id"], line)
			of[entry["msg"].(string)]++
		}
	}
	require.Positive(t, of["run"])
	require.Positive(t, of["not stored"])
	require.Positive(t, of["a run failed"])
}
