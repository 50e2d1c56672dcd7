package dependencies

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
)

// fakeImages is a daemon's memory: it outlives Layers.
type fakeImages struct {
	mu     sync.Mutex
	images map[string]*Image // by ref
	inUse  map[string]bool   // by ref
	fail   error             // of commits
	silent error             // of looks at IDs
	mute   string            // the one reference whose ID is silent; "": all
	late   bool              // commits that fail leave their image all the same
	slow   func()            // called within commits; may be nil
	made   int
	swept  int
}

func newFakeImages() *fakeImages {
	return &fakeImages{images: map[string]*Image{"python:1": {Ref: "python:1", Base: "id of python:1"}}, inUse: map[string]bool{}}
}

func (f *fakeImages) List(context.Context) ([]Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Image
	for _, i := range f.images {
		if len(i.Names) > 0 {
			c := *i
			c.Names = slices.Clone(i.Names)
			c.InUse = f.inUse[i.Ref]
			all = append(all, c)
		}
	}
	return all, nil
}

func (f *fakeImages) ID(_ context.Context, ref string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch i := f.images[ref]; {
	case f.silent != nil && (f.mute == "" || f.mute == ref):
		return "", f.silent
	case i == nil:
		return "", ErrNoImage
	case i.Layer == "":
		return i.Base, nil
	}
	return "id of " + ref, nil
}

func (f *fakeImages) Commit(ctx context.Context, base, name string, content io.Reader, l Image) (string, error) {
	if f.slow != nil {
		f.slow()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.fail, ctx.Err()); err != nil && !f.late {
		return "", err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return "", err
	}
	l.Ref, l.Layer, l.Names, l.Used = "layer:"+name, name, []string{name}, time.Now()
	f.images[l.Ref] = &l
	f.made++
	return l.Ref, f.fail
}

func (f *fakeImages) Alias(_ context.Context, ref, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.images[ref] == nil {
		return ErrNoImage
	}
	if i := f.images[ref]; !slices.Contains(i.Names, name) {
		i.Names = append(i.Names, name)
		i.Used = time.Now()
	}
	return nil
}

func (f *fakeImages) Sweep(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.swept++
	return nil
}

func (f *fakeImages) Forget(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for ref, i := range f.images {
		i.Names = slices.DeleteFunc(i.Names, func(n string) bool { return n == name })
		if len(i.Names) == 0 && i.Layer != "" {
			delete(f.images, ref)
		}
	}
	return nil
}

func (f *fakeImages) Remove(_ context.Context, i Image) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse[i.Ref] {
		return ErrInUse
	}
	delete(f.images, i.Ref)
	return nil
}

func (f *fakeImages) count() (layers, names int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.images {
		if i.Layer != "" {
			layers++
		}
		names += len(i.Names)
	}
	return layers, names
}

// installer is a Runner that does what an installer does: of packages that are called
// "NAME==VERSION" it makes a layer with one file of that name.
type installer struct {
	t  *testing.T
	mu sync.Mutex

	installs, hosts int
	last            runner.Spec
	have            map[string]bool           // in the image
	say             []string                  // lines
	raise           [2]string                 // name and message
	status          runner.Status             // other than ok
	hold            chan struct{}             // waited for before the end; may be nil
	entered         chan struct{}             // told of each install
	asking          chan struct{}             // waited for before the hosts are said; may be nil
	leave           func(runner.Sink, string) // in place of the archive
}

func (i *installer) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	in := map[string]string{}
	for _, f := range spec.Inputs {
		content, err := f.Open()
		require.NoError(i.t, err)
		raw, err := io.ReadAll(content)
		require.NoError(i.t, err)
		in[f.Path] = string(raw)
	}
	var request struct {
		Phase        string
		Dependencies []string
		MaxBytes     int64 `json:"max_bytes"`
		Builds       bool
	}
	require.NoError(i.t, json.Unmarshal([]byte(in["request.json"]), &request))
	require.Contains(i.t, string(spec.Notebook), "/opt/installers/pip.py")
	i.mu.Lock()
	if request.Phase == "hosts" {
		i.hosts++
		asking := i.asking
		i.mu.Unlock()
		if asking != nil {
			select {
			case <-asking:
			case <-ctx.Done():
				return &runner.Outcome{Status: runner.StatusCancelled}, nil
			}
		}
		require.Nil(i.t, spec.Network)
		return &runner.Outcome{Status: runner.StatusOK}, events.File(ctx, "hosts.json", strings.NewReader(`{"hosts":["registry.test:443"]}`))
	}
	require.NotNil(i.t, spec.Network)
	i.installs++
	i.last = spec
	hold, entered := i.hold, i.entered
	i.mu.Unlock()
	for _, line := range i.say {
		output(events, map[string]any{"output_type": "stream", "name": "stdout", "text": line})
	}
	if entered != nil {
		entered <- struct{}{}
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return &runner.Outcome{Status: runner.StatusCancelled}, nil
		}
		output(events, map[string]any{"output_type": "stream", "name": "stdout", "text": []string{"the ", "end"}})
	}
	switch {
	case i.raise[0] != "":
		output(events, map[string]any{"output_type": "error", "ename": i.raise[0], "evalue": i.raise[1]})
		return &runner.Outcome{Status: runner.StatusError}, nil
	case i.status != "":
		return &runner.Outcome{Status: i.status}, nil
	}
	var packages []environments.Package
	contents, headers := map[string]string{}, []tar.Header(nil)
	for _, entry := range request.Dependencies {
		name, version, _ := strings.Cut(entry, "==")
		version = strings.TrimSuffix(version, ".*") + "0"
		if !i.have[name] {
			packages = append(packages, environments.Package{Name: name, Version: version})
			contents["python/"+name] = version
			headers = append(headers, tar.Header{Typeflag: tar.TypeReg, Name: "python/" + name})
		}
	}
	out := &runner.Outcome{Status: runner.StatusOK}
	switch {
	case i.leave != nil:
		i.leave(events, string(packed(i.t, contents, headers...)))
	case len(packages) > 0:
		if err := events.File(ctx, "layer.tar", strings.NewReader(string(packed(i.t, contents, headers...)))); err != nil {
			out.Skipped = append(out.Skipped, runner.Skipped{Path: "/mnt/data/layer.tar", Reason: err.Error()})
		}
	}
	raw, _ := json.Marshal(map[string]any{"packages": packages})
	if packages == nil {
		raw = []byte(`{"packages":[]}`)
	}
	return out, events.File(ctx, "resolved.json", strings.NewReader(string(raw)))
}

func output(events runner.Sink, v map[string]any) {
	raw, _ := json.Marshal(v)
	events.Output(runner.Event{Kind: runner.EventOutput, Output: raw})
}

func (i *installer) counts() (installs, hosts int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.installs, i.hosts
}

// fakeNetwork is a registry's.
type fakeNetwork struct {
	mu    sync.Mutex
	away  error
	asked int
}

func (*fakeNetwork) Serve(context.Context, string, net.Listener) {}
func (*fakeNetwork) CA() []byte                                  { return nil }
func (n *fakeNetwork) Reach(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return n.away
}

// bench is Layers with fakes around.
type bench struct {
	*Layers
	t       *testing.T
	images  *fakeImages
	runner  *installer
	network *fakeNetwork
	results map[string]int
	options Options
}

var pythonEnvironment = environments.Environment{
	Name: "jupyter", Language: "python", Image: "python:1",
	Dependencies: &environments.Dependencies{Notation: "pip", Installer: "/opt/installers/pip.py", Env: map[string]string{"NOTEBOX_PACKAGES": "/opt/dependencies/site-packages"}},
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	b := &bench{t: t, images: newFakeImages(), network: &fakeNetwork{}, results: map[string]int{}}
	b.runner = &installer{t: t, have: map[string]bool{"numpy": true}}
	var mu sync.Mutex
	b.options = Options{
		Runner: b.runner, Images: b.images,
		Network: func(hosts []string) (Network, error) {
			require.Equal(t, []string{"registry.test:443"}, hosts)
			return b.network, nil
		},
		Notebook: func(code string) ([]byte, error) { return []byte(code), nil },
		Limits:   runner.DefaultLimits(),
		TempDir:  t.TempDir() + "/layers",
		Observe: func(result string) {
			mu.Lock()
			defer mu.Unlock()
			b.results[result]++
		},
	}
	for _, c := range change {
		c(&b.options)
	}
	b.restart()
	t.Cleanup(func() { require.NoError(t, b.Wait(context.Background())) })
	return b
}

// restart is what another process of the service begins with.
func (b *bench) restart(images ...string) {
	b.t.Helper()
	if len(images) == 0 {
		images = []string{"python:1"}
	}
	var err error
	b.Layers, err = New(context.Background(), b.options, images)
	require.NoError(b.t, err)
}

func (b *bench) request(entries ...string) Request {
	b.t.Helper()
	set, err := b.Parse(in("pip"), entries)
	require.NoError(b.t, err)
	return Request{
		Environment: pythonEnvironment, Base: runner.Environment{Name: "jupyter", Image: "python:1", Kernel: runner.Kernel{Env: map[string]string{"A": "b"}}},
		Set: set, Owner: "owner", ID: fmt.Sprintf("run %v", entries),
	}
}

// get is Get, with a layer that is released at once.
func (b *bench) get(entries ...string) (*Layer, error) {
	b.t.Helper()
	l, err := b.Get(b.t.Context(), b.request(entries...))
	if err == nil {
		l.Release()
	}
	return l, err
}

func (b *bench) must(entries ...string) *Layer {
	b.t.Helper()
	l, err := b.get(entries...)
	require.NoError(b.t, err)
	return l
}
