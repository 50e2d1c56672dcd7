package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/runner"
)

// many is a text of about so many bytes with one entry after another; %d in one is its number.
func many(size int, head, one, separator, tail string) string {
	b := strings.Builder{}
	b.WriteString(head)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(strings.ReplaceAll(one, "%d", fmt.Sprint(i)))
	}
	return b.String() + tail
}

// TestCostOfBodies: what a body costs in memory is bounded by its size, whatever it is
// made of.
func TestCostOfBodies(t *testing.T) {
	const (
		size = 4 << 20
		most = 16 * size // a notebook is read, checked, written, and written as the run's result
		json = "application/json"
		book = `{"notebook":{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[`
		cell = `{"cell_type":"code","metadata":{},"outputs":[],"execution_count":null,"source":""}`
		call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":{`
	)
	for _, c := range []struct {
		desc, path, contentType, body string
		status                        int
		detail                        string
	}{
		{"files", "/v1/execute", json, many(size, `{"code":"x","files":[`, `{}`, ",", "]}"), 422, "files: there are more than 1000"},
		{"files of a session", sessionsPath, json, many(size, `{"files":[`, `{}`, ",", "]}"), 422, "files: there are more than 1000"},
		{"files of a tool call", "/v1/tools/call", json, many(size, `{"call":{},"files":[`, `{}`, ",", "]}"), 422, "files: there are more than 1000"},
		{"files in a form", "/v1/execute", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=files\r\n\r\n" + many(size, `[`, `{}`, ",", "]\r\n--b--"), 422, "files: there are more than 1000"},
		{"parameters of a part", "/v1/execute", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: " + many(size, "form-data; name=code", "; a%d=b", "", "\r\n\r\n1\r\n--b--"), 400, "is longer than 65536 bytes"},
		{"file parts", "/v1/execute", "multipart/form-data; boundary=b", many(size, "", "--b\r\nContent-Disposition: form-data; name=files; filename=a%d\r\n\r\n", "\r\n", "\r\n--b--"), 422, "files: there are more than 1000"},
		{"cells", "/v1/execute", json, many(size, `{"cells":[`, `""`, ",", "]}"), 422, "cells: there are more than 10000"},
		{"dependencies", "/v1/execute", json, many(size, `{"code":"x","dependencies":[`, `""`, ",", "]}"), 422, "dependencies: there are more than 1000"},
		{"env", "/v1/execute", json, many(100_000, `{"code":"x","env":{`, `"%d":""`, ",", "}}"), 422, "env: there are more than 256"},
		{"more env", "/v1/execute", json, many(size, `{"code":"x","env":{`, `"%d":""`, ",", "}}"), 413, "more than 50000 names"},
		{"cells of a notebook", "/v1/execute", json, many(size, book, cell, ",", "]}}"), 400, "notebook.cells: holds more than 10000"},
		{"names in a notebook", "/v1/execute", json, many(size, book+cell+`],"x":{`, `"%d":0`, ",", "}}}"), 413, "more than 50000 names"},
		{"records in a notebook", "/v1/execute", json, many(size, book+cell+`],"x":[`, `{"a":0,"b":0}`, ",", "]}}"), 200, ""},
		{"values in a notebook", "/v1/execute", json, many(size, book+cell+`],"x":[`, `{}`, ",", "]}}"), 200, ""},
		{"lines in a notebook", "/v1/execute", json, many(size, book+strings.Replace(cell, `""}`, `[`, 1), `""`, ",", "]}]}}"), 200, ""},
		{"attachments", "/v1/execute", json, many(size, book+`{"cell_type":"markdown","metadata":{},"source":"","attachments":{`, `"%d":{}`, ",", "}}]}}"), 413, "more than 50000 names"},
		{"names in a tool call", "/v1/tools/call", json, many(size, `{"call":{`, `"%d":0`, ",", "}}"), 413, "more than 50000 names"},
		{"values in a tool call", "/v1/tools/call", json, many(1<<20-100, `{"call":{"name":"execute_python","arguments":{"code":[`, "0", ",", `]}}}`), 200, "it is not valid JSON"},
		{"names in a Dify call", "/create_sandbox", json, many(size, `{`, `"%d":0`, ",", "}"), 200, "sandbox_id"},
		{"messages of MCP", mcpPath, json, many(size, `[`, `{}`, ",", "]"), 400, "more than 10000 values"},
		{"names in a message of MCP", mcpPath, json, many(size, call, `"%d":0`, ",", "}}}"), 400, "more than 10000 values"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := withSessions(t, newSessions(t))
			req := s.request(http.MethodPost, c.path, c.contentType, strings.NewReader(c.body))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			a := s.do(req)
			runtime.ReadMemStats(&after)
			require.Equal(t, c.status, a.StatusCode, "%.500s", a.body)
			require.Contains(t, string(a.body), c.detail)
			require.Less(t, int(after.TotalAlloc-before.TotalAlloc), most)
		})
	}
}

// TestWhatWaitsHoldsLittle: what a request with large files or messages has in memory while
// its run goes on is small, or has one of the places.
func TestWhatWaitsHoldsLittle(t *testing.T) {
	const clients, most = 8, 2 << 20
	file := func(size int) string { return `"text":"` + strings.Repeat("y", size) + `"` }
	call := `"call":{"id":"c","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"x\"}"}}`
	for _, c := range []struct {
		desc, path, body string
		places           int
	}{
		{"a large file", "/v1/execute", `{"code":"x","files":[{"name":"a",` + file(12<<20) + `}]}`, 0},
		{"small files", "/v1/execute", many(12<<20, `{"code":"x","files":[`, `{"name":"%d",`+file(60<<10)+`}`, ",", "]}"), 0},
		{"a large file of a tool call", "/v1/tools/call", `{` + call + `,"files":[{"name":"a",` + file(12<<20) + `}]}`, 0},
		{"a large message of MCP", mcpPath, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{` + file(12<<20) + `},"name":"run_python","arguments":{"code":"x"}}}`, 1},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, withFolder(t))
			var begun atomic.Int32
			release := make(chan struct{})
			defer close(release)
			s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
				begun.Add(1)
				<-release
				return executed(spec, runner.StatusOK), nil
			}
			session := "Mcp-Session-Id: " + s.mcpRequest(http.MethodPost, initialize, nil).Header.Get("Mcp-Session-Id")
			before := heap()
			for i := range clients {
				s.ask(http.MethodPost, c.path, strings.Replace(c.body, "%d", fmt.Sprint(i+2), 1), session, "Accept: application/json, text/event-stream")
			}
			require.Eventually(t, func() bool { return begun.Load() == clients }, time.Minute, 10*time.Millisecond)
			require.Equal(t, clients*c.places, s.server.Intake.Taken())
			if c.places == 0 {
				require.Eventually(t, func() bool { return (heap()-before)/clients < most }, 20*time.Second, 100*time.Millisecond)
			}
		})
	}
}

// TestLargeProgramKeepsItsPlace among the requests that are taken in: it is in memory while
// its run waits.
func TestLargeProgramKeepsItsPlace(t *testing.T) {
	s := newService(t)
	var held int
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		held = s.server.Intake.Taken()
		return executed(spec, runner.StatusOK), nil
	}
	for size, want := range map[int]int{intake.SpoolMemory: 0, executor.LargeProgram: 1} {
		s.replied(s.postJSON(`{"code":"` + strings.Repeat("x", size) + `"}`))
		require.Equal(t, want, held, "%d bytes", size)
		require.Zero(t, s.server.Intake.Taken())
	}
}
