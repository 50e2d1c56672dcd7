package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/storage"
)

// upload posts files by name and content.
func (s *service) upload(headers http.Header, files ...string) answer {
	s.t.Helper()
	var parts []formPart
	for i := 0; i < len(files); i += 2 {
		parts = append(parts, formPart{fmt.Sprintf(`name="files"; filename=%q`, files[i]), files[i+1]})
	}
	contentType, body := formBody(parts...)
	req := s.request(http.MethodPost, "/v1/files", contentType, strings.NewReader(body))
	for name, values := range headers {
		req.Header[name] = values
	}
	return s.do(req)
}

func (s *service) keptOf(a answer) (out []executor.KeptInput) {
	s.t.Helper()
	require.Equal(s.t, http.StatusCreated, a.StatusCode, "%s", a.body)
	require.NoError(s.t, json.Unmarshal(a.body, &out))
	return out
}

// tellInputs makes runs put out what files they were given.
func (s *service) tellInputs() {
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		files, err := readInputs(spec)
		if err != nil {
			return nil, fmt.Errorf("send the job: input file: %w", err)
		}
		raw, _ := json.Marshal(files)
		return executed(spec, runner.StatusOK, stdout(string(raw))), nil
	}
}

func keyed(key string) http.Header { return http.Header{"X-Api-Key": {key}} }

func TestKeptFileIsAnInputOfLaterRuns(t *testing.T) {
	for _, address := range []string{"mem://", "file://" + t.TempDir()} {
		t.Run(address[:4], func(t *testing.T) {
			clock := new(testClock)
			store := sharedStore(t, address, clock.now)
			s := newService(t, over(store, "a"), clock.set, func(c *Config) { c.Retention = 48 * time.Hour })
			s.tellInputs()
			big := strings.Repeat("0123456789", 300_000)
			kept := s.keptOf(s.upload(nil, "dir/in put.csv", "a,b\n1,2\n", "empty", "", "big.bin", big, "dir/in put.csv", "another"))
			require.Len(t, kept, 4)
			require.Equal(t, "dir/in put.csv", kept[0].Name)
			require.EqualValues(t, 8, kept[0].Bytes)
			require.Equal(t, "text/csv", kept[0].MediaType)
			require.Equal(t, "492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470", kept[0].SHA256)
			require.WithinDuration(t, clock.now().Add(48*time.Hour), *kept[0].ExpiresAt, time.Minute)
			ids := map[string]bool{}
			for _, k := range kept {
				require.Regexp(t, `^file_[0-7][0-9A-HJKMNP-TV-Z]{25}$`, k.ID)
				ids[k.ID] = true
			}
			require.Len(t, ids, 4)

			body := fmt.Sprintf(`{"code":"x","files":[{"name":"in.csv","id":%q},{"name":"copy/in.csv","id":%q},{"name":"e","id":%q},{"name":"b","id":%q},{"name":"c","content":"YQ=="}]}`,
				kept[0].ID, kept[0].ID, kept[1].ID, kept[2].ID)
			for range 2 {
				var got map[string]string
				require.NoError(t, json.Unmarshal([]byte(s.replied(s.postJSON(body)).Outputs[0]["text"].(string)), &got))
				require.Equal(t, map[string]string{"in.csv": "a,b\n1,2\n", "copy/in.csv": "a,b\n1,2\n", "e": "", "b": big, "c": "a"}, got)
			}
			contentType, form := formBody(formPart{`name="code"`, "x"}, formPart{`name="files"`, `[{"name":"in.csv","id":"` + kept[3].ID + `"}]`},
				formPart{`name="files"; filename="other"`, "o"})
			require.JSONEq(t, `{"in.csv":"another","other":"o"}`, s.replied(s.post("/v1/execute", contentType, form)).Text)
			s.requireNoFiles()

			require.Equal(t, 204, s.call(http.MethodDelete, "/v1/files/"+kept[0].ID).StatusCode)
			require.Equal(t, 404, s.call(http.MethodDelete, "/v1/files/"+kept[0].ID).StatusCode)
			s.runs = nil
			s.requireProblem(s.postJSON(body), 422, "files[0].id: there is no such file")

			clock.advance(48*time.Hour + time.Second)
			s.requireProblem(s.postJSON(fmt.Sprintf(`{"code":"x","files":[{"name":"a","content":""},{"name":"b","id":%q}]}`, kept[3].ID)), 422, "files[1].id: there is no such file")
			require.Equal(t, 404, s.call(http.MethodDelete, "/v1/files/"+kept[3].ID).StatusCode)
		})
	}
}

func TestKeptFileIsItsOwnersAlone(t *testing.T) {
	s := newService(t, withKeys(t, "one", "two"))
	s.tellInputs()
	require.Equal(t, 401, s.upload(nil, "a", "x").StatusCode)
	id := s.keptOf(s.upload(keyed("one"), "a", "secret"))[0].ID
	body := `{"code":"x","files":[{"name":"a","id":"` + id + `"}]}`
	a := s.do(s.with(body, "X-API-Key", "two"))
	s.requireProblem(a, 422, "files[0].id: there is no such file")
	require.NotContains(t, string(a.body), "secret")
	require.Equal(t, 404, s.call(http.MethodDelete, "/v1/files/"+id, "X-API-Key", "two").StatusCode)
	require.Equal(t, 401, s.call(http.MethodDelete, "/v1/files/"+id).StatusCode)
	require.Equal(t, 403, s.call(http.MethodGet, "/v1/files/"+id, "X-API-Key", "one").StatusCode, "no link leads to it")
	require.Contains(t, s.replied(s.do(s.with(body, "X-API-Key", "one"))).Text, "secret")
	require.NotContains(t, s.logged.String(), id, "an id is as good as the file")
}

func TestBadIDs(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		desc, file string
		status     int
		detail     string
	}{
		{"unknown", `{"name":"a","id":"file_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"}`, 422, "files[0].id: there is no such file"},
		{"far from now", `{"name":"a","id":"file_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"}`, 422, "files[0].id: there is no such file"},
		{"of no form", `{"name":"a","id":"../../records/x"}`, 422, "files[0].id: there is no such file"},
		{"empty", `{"name":"a","id":""}`, 422, "files[0].id: is empty"},
		{"of another type", `{"name":"a","id":7}`, 400, "files[0].id: must be a string"},
		{"without a name", `{"id":"file_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"}`, 400, "files[0].name: is missing"},
		{"with a content", `{"name":"a","id":"x","content":""}`, 400, "files[0]: must have exactly one of content, text, url and id"},
		{"with a url", `{"name":"a","id":"x","url":"http://x"}`, 400, "files[0]: must have exactly one of content, text, url and id"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.requireProblem(s.postJSON(`{"code":"x","files":[`+c.file+`]}`), c.status, c.detail)
		})
	}
}

func TestIDIsPartOfTheFingerprint(t *testing.T) {
	s := newService(t)
	kept := s.keptOf(s.upload(nil, "a", "same", "b", "same"))
	body := func(i int) string { return `{"code":"x","files":[{"name":"a","id":"` + kept[i].ID + `"}]}` }
	first := s.do(s.with(body(0), idempotent, "k"))
	s.replied(first)
	require.Equal(t, 409, s.do(s.with(body(1), idempotent, "k")).StatusCode)
	require.Equal(t, 204, s.call(http.MethodDelete, "/v1/files/"+kept[0].ID).StatusCode)
	require.Equal(t, string(first.body), string(s.do(s.with(body(0), idempotent, "k")).body), "a reply outlives its inputs")
}

func TestBadUploads(t *testing.T) {
	store := &countedStore{}
	s := newService(t, func(c *Config) {
		store.Store = c.Store
		c.Store, c.MaxUpload = store, 100_000
	})
	form := func(parts ...formPart) string { _, body := formBody(parts...); return body }
	for _, c := range []struct {
		desc, contentType, body string
		status                  int
		detail                  string
	}{
		{"JSON", "application/json", `{}`, 415, "multipart/form-data"},
		{"nothing", "", `x`, 415, "multipart/form-data"},
		{"no boundary", "multipart/form-data", `x`, 400, "boundary"},
		{"not a form", "multipart/form-data; boundary=x", `x`, 400, "not well-formed"},
		{"an empty form", "multipart/form-data; boundary=x", "--x--\r\n", 400, "the form is empty"},
		{"another field", "", form(formPart{`name="code"`, "x"}), 400, "code: there is no such field"},
		{"no file name", "", form(formPart{`name="files"`, "x"}), 400, "files[0]: has no file name"},
		{"a name that leaves", "", form(formPart{`name="files"; filename="a"`, "x"}, formPart{`name="files"; filename="../x"`, "x"}), 400, "files[1].name: leaves /mnt/data"},
		{"too large", "", form(formPart{`name="files"; filename="a"`, "x"}, formPart{`name="files"; filename="b"`, strings.Repeat("x", 200_000)}), 413, "100000 bytes"},
		{"cut off", "", strings.TrimSuffix(form(formPart{`name="files"; filename="a"`, "x"}, formPart{`name="files"; filename="b"`, "y"}), "--\r\n"), 400, "not well-formed"},
		{"too many", "", form(slicesRepeat(formPart{`name="files"; filename="a"`, ""}, executor.MaxInputs+1)...), 413, ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			if c.contentType == "" && strings.HasPrefix(c.body, "--") {
				boundary, _, _ := strings.Cut(c.body[2:], "\r\n")
				c.contentType = "multipart/form-data; boundary=" + boundary
			}
			s.requireProblem(s.post("/v1/files", c.contentType, c.body), c.status, c.detail)
			require.Zero(t, store.there.Load(), "all are kept or none")
		})
	}
}

func TestTooManyUploads(t *testing.T) {
	store := &countedStore{}
	s := newService(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	contentType, body := formBody(slicesRepeat(formPart{`name="files"; filename="a"`, ""}, executor.MaxInputs+1)...)
	s.requireProblem(s.post("/v1/files", contentType, body), 422, "files: there are more than 1000")
	require.Zero(t, store.there.Load())
}

func slicesRepeat[T any](v T, n int) (out []T) {
	for range n {
		out = append(out, v)
	}
	return out
}

// countedStore counts the objects of inputs that are there.
type countedStore struct {
	Store
	there atomic.Int64
}

func (c *countedStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	o, err := c.Store.Put(ctx, key, content, name)
	if err == nil && strings.HasPrefix(key, "inputs/") {
		c.there.Add(1)
	}
	return o, err
}

func (c *countedStore) Delete(ctx context.Context, key string) error {
	err := c.Store.Delete(ctx, key)
	if err == nil && strings.HasPrefix(key, "inputs/") {
		c.there.Add(-1)
	}
	return err
}

// away is a store that does not answer, while down is set.
type away struct {
	Store
	down atomic.Bool
}

func (a *away) err() error {
	if a.down.Load() {
		return &url.Error{Op: "Put", URL: "http://account.internal:10000/container?sig=secret", Err: syscall.ECONNREFUSED}
	}
	return nil
}

func (a *away) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	if err := a.err(); err != nil {
		return storage.Object{}, err
	}
	return a.Store.Put(ctx, key, content, name)
}

func (a *away) Get(ctx context.Context, key string) (*storage.Reader, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	return a.Store.Get(ctx, key)
}

func (a *away) Ready(ctx context.Context) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.Store.Ready(ctx)
}

func newAway(t *testing.T, change ...func(*Config)) (*service, *away) {
	store := new(away)
	s := newService(t, append([]func(*Config){func(c *Config) {
		store.Store = c.Store
		c.Store = store
	}}, change...)...)
	return s, store
}

func TestInputsWhileTheStoreIsAway(t *testing.T) {
	s, store := newAway(t)
	id := s.keptOf(s.upload(nil, "a", "x"))[0].ID
	store.down.Store(true)
	for _, a := range []answer{
		s.upload(nil, "a", "x"),
		s.postJSON(`{"code":"x","files":[{"name":"a","id":"` + id + `"}]}`),
		s.call(http.MethodDelete, "/v1/files/"+id),
	} {
		s.requireProblem(a, 503, "the store")
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		require.NotContains(t, string(a.body), "internal")
	}
	store.down.Store(false)
	s.tellInputs()
	require.Contains(t, s.replied(s.postJSON(`{"code":"x","files":[{"name":"a","id":"`+id+`"}]}`)).Text, `"x"`)
}

// TestInputThatGoesWhileItIsRead is a refusal of the run, and never half a file.
func TestInputThatGoesWhileItIsRead(t *testing.T) {
	s, store := newAway(t)
	id := s.keptOf(s.upload(nil, "a", "x"))[0].ID
	read := make(chan error, 1)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		store.down.Store(true)
		_, err := readInputs(spec)
		read <- err
		return nil, fmt.Errorf("send the job: %w", err)
	}
	a := s.postJSON(`{"code":"x","files":[{"name":"a","id":"` + id + `"}]}`)
	require.Equal(t, 503, a.StatusCode, "%s", a.body)
	err := <-read
	require.Error(t, err)
	require.False(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "the runner takes those for the end")

	store.down.Store(false)
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		key, _ := executor.InputKey("", id, storage.PartContent)
		require.NoError(t, store.Delete(ctx, key))
		_, err := readInputs(spec)
		return nil, fmt.Errorf("send the job: %w", err)
	}
	a = s.postJSON(`{"code":"x","files":[{"name":"a","id":"` + id + `"}]}`)
	require.Equal(t, 422, a.StatusCode, "%s", a.body)
	require.Contains(t, string(a.body), "files[0].id: there is no such file")
}

func TestInputsThatDoNotFit(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.Limits = runner.DefaultLimits()
		c.Limits.DataSize = 10
	})
	id := s.keptOf(s.upload(nil, "a", "0123456"))[0].ID
	s.requireProblem(s.postJSON(`{"code":"x","files":[{"name":"a","id":"`+id+`"},{"name":"b","id":"`+id+`"}]}`), 413, "files: together they are larger")
}
