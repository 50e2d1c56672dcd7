package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/server/web"
)

// eventReader reads server-sent events as they come.
type eventReader struct {
	t *testing.T
	*http.Response
	lines *bufio.Reader
}

type sentEvent struct {
	name string // "" for a comment
	data string
}

// stream posts a request whose answer is a stream.
func (s *service) stream(ctx context.Context, body string) *eventReader {
	s.t.Helper()
	req := s.request(http.MethodPost, "/v1/execute", "application/json", strings.NewReader(body)).WithContext(ctx)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { resp.Body.Close() })
	return &eventReader{s.t, resp, bufio.NewReader(resp.Body)}
}

// next is strict about the form that this service gives its events. ok is false
// at the end of the stream.
func (r *eventReader) next() (e sentEvent, ok bool) {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if line == "" && err == io.EOF {
			require.Empty(r.t, e, "the stream ends within an event")
			return e, false
		}
		require.NoError(r.t, err)
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			require.Empty(r.t, e)
			e.name = value
		case "data":
			require.Empty(r.t, e.data)
			require.True(r.t, json.Valid([]byte(value)), value)
			require.NotContains(r.t, value, "\r")
			e.data = value
		case "": // a comment, or the end of an event
			if e.name != "" || value != "" {
				if value != "" {
					_, err := r.lines.ReadString('\n')
					require.NoError(r.t, err)
					e.data = value
				}
				return e, true
			}
		default:
			require.Fail(r.t, "not of an event", "%q", line)
		}
	}
}

// want reads the next event, and its data into v if that is not nil.
func (r *eventReader) want(name string, v any) string {
	r.t.Helper()
	e, ok := r.next()
	require.True(r.t, ok, "the stream has ended")
	require.Equal(r.t, name, e.name, e.data)
	if v != nil {
		require.NoError(r.t, json.Unmarshal([]byte(e.data), v))
	}
	return e.data
}

func (r *eventReader) wantEnd() {
	r.t.Helper()
	e, ok := r.next()
	require.False(r.t, ok, "%v", e)
}

// picture is an output with an image and, where id is set, a display's id.
func picture(id string) string {
	output := `{"output_type":"display_data","metadata":{},"data":{"text/plain":"<Figure>","image/png":"` + onePixel + `"}`
	if id != "" {
		output += `,"transient":{"display_id":"` + id + `"}`
	}
	return output + "}"
}

// stepper is a run that takes a step when the test says so.
type stepper struct {
	steps chan func(ctx context.Context, events runner.Sink)
}

func (s *service) stepwise(outcome func(spec runner.Spec) *runner.Outcome) *stepper {
	p := &stepper{make(chan func(context.Context, runner.Sink))}
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for step := range p.steps {
			step(ctx, events)
		}
		return outcome(spec), nil
	}
	return p
}

func (p *stepper) do(kind runner.EventKind, cell int, output string) {
	p.steps <- func(_ context.Context, events runner.Sink) {
		events.Output(runner.Event{Kind: kind, Cell: cell, Output: []byte(output)})
	}
}

func (p *stepper) end() { close(p.steps) }

// TestStreamTellsAsItHappens takes each step of the run after the event of the
// step before was read.
func TestStreamTellsAsItHappens(t *testing.T) {
	s := newService(t)
	run := s.stepwise(func(spec runner.Spec) *runner.Outcome {
		out := executed(spec, runner.StatusError, stdout("a\n"), stdout("b\n"), picture(""), raised("ValueError", "y"))
		out.Skipped = []runner.Skipped{{Path: "/mnt/data/x", Reason: "y"}}
		return out
	})
	r := s.stream(context.Background(), `{"code":"x"}`)
	require.Equal(t, 200, r.StatusCode)
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	require.Equal(t, "no", r.Header.Get("X-Accel-Buffering"))
	var started struct{ ID string }
	require.JSONEq(t, `{"id":"`+s.only().ID+`"}`, r.want("started", &started))

	for _, step := range []struct {
		kind   runner.EventKind
		output string
		want   string // JSON
	}{
		{runner.EventOutput, stdout("a\n"), `{"cell":0,"type":"stream","name":"stdout","text":"a\n"}`},
		{runner.EventOutput, stdout("10%\r"), `{"cell":0,"type":"stream","name":"stdout","text":"10%"}`},
		{runner.EventOutput, stdout("b\r\n"), `{"cell":0,"type":"stream","name":"stdout","text":"b0%\n","replaced_lines":1}`},
		{runner.EventOutput, displayed("d", "1%"), `{"cell":0,"type":"display","data":{"text/plain":"1%"},"display_id":"d"}`},
		{runner.EventUpdate, displayed("d", "2%"), `{"cell":0,"type":"display","data":{"text/plain":"2%"},"display_id":"d","update":true}`},
		{runner.EventOutput, "{\"output_type\":\"execute_result\",\"data\":{\"application/json\":{\n \"a\" :\r\n[1]}}}", `{"cell":0,"type":"result","data":{"application/json":{"a":[1]}}}`},
		{runner.EventOutput, raised("ValueError", "<y>"), `{"cell":0,"type":"error","name":"ValueError","message":"<y>","traceback":"ValueError: <y>"}`},
		{runner.EventClear, "", `{"cell":0}`},
	} {
		run.do(step.kind, 0, step.output)
		name := "output"
		if step.kind == runner.EventClear {
			name = "clear"
		}
		require.JSONEq(t, step.want, r.want(name, nil))
	}

	run.do(runner.EventOutput, 0, picture(""))
	var image struct {
		Data map[string]json.RawMessage
	}
	r.want("output", &image)
	var link executor.BlobLink
	require.NoError(t, json.Unmarshal(image.Data["image/png"], &link))
	png, _ := base64.StdEncoding.DecodeString(onePixel)
	require.Equal(t, png, s.get(link.URL).body, "it is there when it is told of")

	run.steps <- func(ctx context.Context, events runner.Sink) {
		require.NoError(t, events.File(ctx, "a/b.csv", strings.NewReader("1")))
	}
	var file map[string]any
	r.want("file", &file)
	run.end()
	var done replyJSON
	raw := r.want("done", &done)
	r.wantEnd()

	require.Equal(t, started.ID, done.ID)
	require.Equal(t, "error", done.Status)
	require.Equal(t, map[string]any{"cell": 0.0, "type": "stream", "name": "stdout", "text": "a\nb\n"}, done.Outputs[0], "merged, as in a notebook")
	require.Len(t, done.Outputs, 3)
	require.Equal(t, map[string]any{"name": link.Name, "url": link.URL}, done.Outputs[1]["data"].(map[string]any)["image/png"])
	require.Equal(t, link.URL, done.Images[0]["url"])
	require.Equal(t, onePixel, done.Images[0]["data"])
	require.Equal(t, []map[string]any{file}, done.Files)

	// What is done is what the whole reply would have been.
	plain := s.stepwise(func(spec runner.Spec) *runner.Outcome { return executed(spec, runner.StatusOK) })
	plain.end()
	var keys, others map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(raw), &keys))
	require.NoError(t, json.Unmarshal(s.postJSON(`{"code":"x"}`).body, &others))
	require.ElementsMatch(t, keysOf(keys), keysOf(others))
}

func keysOf(m map[string]json.RawMessage) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func TestStreamThatFails(t *testing.T) {
	full := &runner.Error{Code: runner.CodeFull, Message: "too many runs are waiting", RetryAfter: 1500 * time.Millisecond}
	secret := errors.New("dial unix /var/run/docker.sock")
	for _, c := range []struct {
		desc   string
		before func(runner.Sink) // what there is to see
		err    error
		event  string // "": an ordinary answer, of status
		status int
	}{
		{"refused at once", nil, full, "", 503},
		{"failed at once", nil, secret, "", 500},
		{"variables", nil, &runner.Error{Code: runner.CodeEnv, Message: "the kernel does not start"}, "", 422},
		{"panicked at once", nil, nil, "", 500},
		{"refused after a wait", func(runner.Sink) { time.Sleep(100 * time.Millisecond) }, full,
			`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"too many runs are waiting","retry_after":2}`, 200},
		{"failed after an output", func(events runner.Sink) {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout("x"))})
		}, secret, `{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the service failed; its log says why"}`, 200},
		{"panicked after an output", func(events runner.Sink) {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout("x"))})
		}, nil, `{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the service failed; its log says why"}`, 200},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.server.Pace.Head = 30 * time.Millisecond
			s.run = func(_ context.Context, _ runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				if c.before != nil {
					c.before(events)
				}
				if c.err == nil {
					panic("boom")
				}
				return nil, c.err
			}
			r := s.stream(context.Background(), `{"code":"x"}`)
			require.Equal(t, c.status, r.StatusCode)
			if c.event == "" {
				require.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
				require.Empty(t, r.Header.Get("X-Accel-Buffering"))
				return
			}
			r.want("started", nil)
			e, _ := r.next()
			for e.name == "output" {
				e, _ = r.next()
			}
			require.Equal(t, "error", e.name)
			require.JSONEq(t, c.event, e.data)
			r.wantEnd()
			if errors.Is(c.err, secret) {
				require.Contains(t, s.logged.String(), "docker.sock")
			}
		})
	}
}

func TestStreamIsRefusedLikeAnyRequest(t *testing.T) {
	s := newService(t)
	for body, status := range map[string]int{`{`: 400, `{"code":"x","timeout":-1}`: 422} {
		r := s.stream(context.Background(), body)
		require.Equal(t, status, r.StatusCode)
		require.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
	}
	require.Empty(t, s.started())
}

func TestStreamIsKeptAlive(t *testing.T) {
	s := newService(t)
	s.server.Pace.Alive = 20 * time.Millisecond
	run := s.stepwise(func(spec runner.Spec) *runner.Outcome { return executed(spec, runner.StatusOK) })
	r := s.stream(context.Background(), `{"code":"x"}`)
	r.want("started", nil)
	for range 3 {
		e, ok := r.next()
		require.True(t, ok)
		require.Equal(t, sentEvent{"", "keep-alive"}, e)
	}
	run.end()
	e, _ := r.next()
	for e.name == "" {
		e, _ = r.next()
	}
	require.Equal(t, "done", e.name)
}

func TestWhoWantsEvents(t *testing.T) {
	for _, c := range []struct {
		desc   string
		accept []string
		want   bool
	}{
		{"nothing", nil, false},
		{"anything", []string{"*/*"}, false},
		{"any text", []string{"text/*"}, false},
		{"JSON", []string{"application/json"}, false},
		{"events", []string{"text/event-stream"}, true},
		{"in another case, with a parameter", []string{"Text/Event-Stream; charset=utf-8"}, true},
		{"events or else anything", []string{"text/event-stream, */*;q=0.1"}, true},
		{"events and anything", []string{"*/*, text/event-stream"}, true},
		{"both", []string{"application/json, text/event-stream"}, true},
		{"both, in two headers", []string{"application/json", "text/event-stream"}, true},
		{"rather JSON", []string{"application/json, text/event-stream;q=0.9"}, false},
		{"rather anything", []string{"text/event-stream;q=0.5, */*"}, false},
		{"rather events", []string{"application/json;q=0.5, text/event-stream;q=0.6, */*"}, true},
		{"no events", []string{"text/event-stream;q=0"}, false},
		{"a weight that is none", []string{"text/event-stream;q=NaN", "text/event-stream;q=2"}, false},
		{"nonsense beside it", []string{",;;, /, text/event-stream"}, true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.want, web.WantsEvents(http.Header{"Accept": c.accept}))
		})
	}
}

func TestStreamEndsWithTheService(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		<-ctx.Done()
		return executed(spec, runner.StatusCancelled, stdout("so far\n")), nil
	}
	r := s.stream(context.Background(), `{"code":"x"}`)
	r.want("started", nil)
	s.server.CancelRuns()
	var done replyJSON
	r.want("done", &done)
	require.Equal(t, "cancelled", done.Status)
	require.Equal(t, "so far\n", done.Text)
}

// TestStreamWaitsUntilItsRequestIsRight: what is found wrong late is a 4xx, too.
func TestStreamWaitsUntilItsRequestIsRight(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(100 * time.Millisecond)
		w.WriteHeader(http.StatusNotFound)
	})
	s := newFetching(t)
	s.server.Pace.Head = time.Millisecond
	r := s.stream(context.Background(), `{"code":"x","files":[{"name":"a","url":"http://files.test:`+o.port()+`/"}]}`)
	require.Equal(t, 422, r.StatusCode)
	require.Equal(t, "application/problem+json", r.Header.Get("Content-Type"))
}
