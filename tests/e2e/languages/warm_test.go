package languages

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/tests/e2e/service"
)

// A warm sandbox has imported libraries before it has a job. These tests hold what
// that promises: it leaves no trace in a run beyond sys.modules. A kernel that is
// started anew, which a request with env gets, is what a warm one is compared with. In a cell that
// one is a container's kernel in all but its walls, so there this is also the comparison of a cell
// with a container.

// isWarm is put before a cell that is to run in a warm sandbox.
const isWarm = "import sys; assert 'pyarrow.pandas_compat' in sys.modules, 'this sandbox is not warm'\n"

// allowedDifference is where a warm kernel may be another, and why.
type allowedDifference struct{ when, name, reason string }

// knownDifferences between a warm kernel and one that is started anew, by where in
// the cell they are seen ("start", or "imported": after it has imported numpy,
// pandas and pyplot), and by name. A name that ends in . stands for all that begin
// so. Nothing but what is here may differ.
var knownDifferences = []allowedDifference{
	{"", "env.NOTEBOX_TEST", "the request for the kernel that is started anew has it"},
	{"", "env.JPY_PARENT_PID", "a process id"},
	{"", "sys.modules", "what was imported beforehand is there"},
	{"", "gc.frozen", "a forked kernel does not look at what it shares with its harness"},
	{"", "sys.orig_argv", "a forked process has the command line of its parent"},
	{"", "process.command", "the same"},
	{"", "process.standard", "stdin is at its end in both: of /dev/null, or of a pipe that nobody writes to"},
	{"", "process.descriptors", "of the same, and of ZeroMQ, which takes what it needs as it needs it"},
	{"start", "warnings", "numpy, pandas and matplotlib add filters when they are imported"},
	{"start", "atexit", "matplotlib and pyarrow add handlers when they are imported"},
	{"start", "copyreg", "numpy says how its types are copied when it is imported"},
	{"start", "home", "matplotlib makes its folder when it is imported"},
	{"start", "process.threads", "numpy starts the threads of its linear algebra when it is imported"},
	// The formatter makes its list when it is asked first: a kernel whose first cell
	// imports numpy has this one too, this script asks before.
	{"", "formatters.text/plain", "a printer of numpy.float64, if numpy was imported first"},
}

// differencesOfCells are more of these, where a sandbox is a cell.
var differencesOfCells = []allowedDifference{
	{"", "threads", "a kernel with wires has one thread beside the main one"},
	{"", "atexit", "ZeroMQ and the threads for it have handlers"},
	{"imported", "process.threads", "the same; and OpenBLAS has its threads when there is work"},
	{"imported", "home", "matplotlib has made its folder of settings in another home"},
}

// warmService is a service for one test, with one sandbox that waits.
func warmService(t *testing.T, name string) *service.Service {
	t.Helper()
	return service.Start(t, name, "--pool-size", "1", "--pool-max", "1")
}

func TestWarmSandboxLeavesNoTrace(t *testing.T) {
	t.Parallel()
	p := warmService(t, "trace")
	code, err := os.ReadFile("testdata/warm/state.py")
	require.NoError(t, err)
	observe := func(r service.Reply) map[string]map[string]json.RawMessage {
		require.Equal(t, "ok", r.Status, r.Text)
		for _, more := range r.Outputs[1:] {
			t.Errorf("beside its output there is %s", more.Text)
		}
		var seen map[string]map[string]json.RawMessage
		service.Decode(t, []byte(r.Outputs[0].Text), &seen)
		for when := range seen {
			seen[when] = flatten(seen[when])
		}
		return seen
	}
	warm := observe(p.ExecuteWarm(t, map[string]any{"code": string(code)}))
	anew := observe(p.Execute(t, map[string]any{"code": string(code), "env": map[string]string{"NOTEBOX_TEST": "1"}}))
	require.Contains(t, string(warm["start"]["sys.modules"]), `"pyarrow.pandas_compat"`)
	require.NotContains(t, string(anew["start"]["sys.modules"]), `"numpy"`)
	allowed := knownDifferences
	if p.InCells(t) {
		allowed = slices.Concat(allowed, differencesOfCells)
	}
	for _, when := range []string{"start", "imported"} {
		names := map[string]bool{}
		for name := range warm[when] {
			names[name] = true
		}
		for name := range anew[when] {
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			w, a := string(warm[when][name]), string(anew[when][name])
			if w != a && !isAmong(allowed, when, name) {
				t.Errorf("%s, %s:\nwarm: %.1000s\nanew: %.1000s", when, name, w, a)
			}
		}
	}
}

// flatten takes objects apart, so that a difference is one of a name.
func flatten(seen map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, raw := range seen {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			out[name] = raw
			continue
		}
		for field, value := range fields {
			out[name+"."+field] = value
		}
	}
	return out
}

func isAmong(all []allowedDifference, when, name string) bool {
	for _, known := range all {
		if (known.when == "" || known.when == when) &&
			(known.name == name || strings.HasSuffix(known.name, ".") && strings.HasPrefix(name, known.name)) {
			return true
		}
	}
	return false
}

// TestNetworkLeavesNoTrace: a warm kernel that is told of its network differs from one that is not
// by the variables alone.
func TestNetworkLeavesNoTrace(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	p := service.Start(t, "network-trace", "--pool-size", "1", "--pool-max", "1", "--allow-network", "*", "--egress-ca", ca)
	code, err := os.ReadFile("testdata/warm/state.py")
	require.NoError(t, err)
	observe := func(network bool) map[string]json.RawMessage {
		r := p.ExecuteWarm(t, map[string]any{"network": network, "timeout": 120, "code": string(code)})
		require.Equal(t, "ok", r.Status, r.Text)
		var seen map[string]map[string]json.RawMessage
		service.Decode(t, []byte(r.Outputs[0].Text), &seen)
		return flatten(seen["start"])
	}
	with, without := observe(true), observe(false)
	var differ []string
	for name, value := range with {
		if string(without[name]) != string(value) && !isAmong(knownDifferences, "start", name) {
			differ = append(differ, name)
		}
	}
	for name := range without {
		if _, ok := with[name]; !ok {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	require.Equal(t, []string{
		"env.ALL_PROXY", "env.CURL_CA_BUNDLE", "env.GIT_SSL_CAINFO", "env.HTTPS_PROXY", "env.HTTP_PROXY", "env.NODE_EXTRA_CA_CERTS",
		"env.NO_PROXY", "env.PIP_CERT", "env.REQUESTS_CA_BUNDLE", "env.SSL_CERT_FILE",
		"env.all_proxy", "env.http_proxy", "env.https_proxy", "env.no_proxy",
	}, differ)
}

// TestWarmSandboxShowsTheSame as a kernel that is started anew, also if libraries
// decide by what was there before them.
func TestWarmSandboxShowsTheSame(t *testing.T) {
	t.Parallel()
	p := warmService(t, "same")
	const threads = "how many threads there are"
	for _, c := range []struct{ desc, code string }{
		{"a number of numpy", "import numpy as np\nnp.float64(0.1)"},
		{"numbers in a list", "import numpy as np\n[np.float64(0.1), np.int8(1)], np.pi * np.arange(3)"},
		{"a frame of many columns", "import pandas as pd\npd.DataFrame([range(30)])"},
		{"a frame of many columns, printed", "import pandas as pd\nprint(pd.DataFrame([range(100, 130)]))"},
		{threads, "import threading\nprint(threading.Thread(target=print).name, threading.active_count())"},
		{"pyplot's mode", "import matplotlib.pyplot as plt\nprint(plt.isinteractive(), plt.get_fignums())"},
		{"a figure of another backend", "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nf, a = plt.subplots()\nprint(plt.isinteractive())\nf"},
		{"a figure as a result", "import matplotlib.figure\nmatplotlib.figure.Figure()"},
		{"what is drawn and not shown in another backend", "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n_ = plt.title('$\\\\nosuch$')"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			warm := p.ExecuteWarm(t, map[string]any{"code": c.code})
			if c.desc == threads && p.InCells(t) { // which has none for ZeroMQ
				require.Equal(t, "Thread-1 (print) 2\n", warm.Text)
				return
			}
			anew := p.Execute(t, map[string]any{"code": c.code, "env": map[string]string{"NOTEBOX_TEST": "1"}})
			shown := func(r service.Reply) (out []string) {
				for _, o := range r.Outputs {
					out = append(out, fmt.Sprintf("%s %s %s %s", o.Type, o.Text, o.Data["text/plain"], slices.Sorted(maps.Keys(o.Data))))
				}
				return append(out, r.Status)
			}
			require.Equal(t, shown(anew), shown(warm))
		})
	}
}

// TestFontsAreOpen: the fonts of a figure's usual texts, in a sandbox that waits. They are not in a
// cell: matplotlib forgets them in a fork.
func TestFontsAreOpen(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "fonts", "--isolation", "container", "--pool-size", "1", "--pool-max", "1")
	r := p.ExecuteWarm(t, map[string]any{"code": isWarm + `import matplotlib.pyplot as plt
from matplotlib import font_manager
opened = font_manager._get_font.cache_info().misses
plt.title('a')
plt.xlabel('b')
plt.savefig('a.png')
print(font_manager._get_font.cache_info().misses - opened)`})
	require.Equal(t, "0\n", r.Outputs[0].Text)
}

// TestWarmSandboxesShareNoRandomState: two of them are not alike.
func TestWarmSandboxesShareNoRandomState(t *testing.T) {
	t.Parallel()
	p := warmService(t, "random")
	request := map[string]any{"code": isWarm + `import json, random, secrets, tempfile, uuid, os, numpy
print(json.dumps({
    "random": random.random(), "numpy": numpy.random.random(), "generator": numpy.random.default_rng().random(),
    "uuid": str(uuid.uuid4()), "hash": hash("a"), "secrets": secrets.token_hex(), "urandom": os.urandom(8).hex(),
    "tempfile": next(tempfile._get_candidate_names()),
}))`}
	var two [2]map[string]any
	for i := range two {
		r := p.ExecuteWarm(t, request)
		require.Equal(t, "ok", r.Status, r.Text)
		service.Decode(t, []byte(r.Outputs[0].Text), &two[i])
	}
	if p.InCells(t) {
		delete(two[0], "hash") // of one worker: SECURITY.md says so
	}
	for name := range two[0] {
		require.NotEqual(t, two[0][name], two[1][name], name)
	}
}

// TestEnvironmentIsNotTooLate: variables that are read but once take effect.
func TestEnvironmentIsNotTooLate(t *testing.T) {
	t.Parallel()
	p := warmService(t, "env")
	request := map[string]any{
		"code": `import os, sys, time
import numpy, matplotlib.pyplot as plt
print(os.environ["OMP_NUM_THREADS"], plt.get_backend().lower(), time.tzname, sys.flags.hash_randomization, hash("a"))
print(time.localtime(0).tm_hour)`,
		"env": map[string]string{"OMP_NUM_THREADS": "3", "MPLBACKEND": "agg", "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"},
	}
	first := p.ExecuteWarm(t, request)
	require.Equal(t, "ok", first.Status, first.Text)
	require.Contains(t, first.Text, "3 agg ('JST', 'JST')")
	require.Contains(t, first.Text, "\n9\n", "the epoch is nine in the morning there")
	require.Equal(t, first.Text, p.ExecuteWarm(t, request).Text, "the same seed, the same hash")
}

// TestInputThatIsNamedLikeAWarmLibrary is imported instead of it, as with Jupyter.
func TestInputThatIsNamedLikeAWarmLibrary(t *testing.T) {
	t.Parallel()
	p := warmService(t, "shadow")
	for _, name := range []string{"pandas.py", "pandas/__init__.py", "pyparsing.py"} {
		module := strings.TrimSuffix(strings.TrimSuffix(name, ".py"), "/__init__")
		r := p.ExecuteWarm(t, map[string]any{
			"code":  "import " + module + "\nprint(" + module + ".mine)",
			"files": []map[string]any{{"name": name, "content": []byte("mine = 'the user\\'s'")}},
		})
		require.Equal(t, "ok", r.Status, "%s: %s", name, r.Text)
		require.Equal(t, "the user's\n", r.Text, name)
	}
}

// TestWarmUpIsSilent: each library of the list imports, and none says something
// that a user would have seen if it had been imported in a cell.
func TestWarmUpIsSilent(t *testing.T) {
	t.Parallel()
	p := warmService(t, "silent")
	all, err := environments.Load("")
	require.NoError(t, err)
	list, err := json.Marshal(all[0].Kernel.WarmUp)
	require.NoError(t, err)
	r := p.Execute(t, map[string]any{
		"env": map[string]string{"NOTEBOX_TEST": "1"},
		"code": fmt.Sprintf(`import importlib, sys, warnings
assert "numpy" not in sys.modules
HIDDEN = DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning  # by default
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for name in %s:
        importlib.import_module(name)
for w in seen:
    # Those of code of __main__ are shown.
    if not issubclass(w.category, HIDDEN) or "ipykernel_" in w.filename:
        print(w)`, list),
	})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Empty(t, r.Outputs, r.Text)
}

// TestFigureInAWarmSandbox is shown once, and is the first image.
func TestFigureInAWarmSandbox(t *testing.T) {
	t.Parallel()
	p := warmService(t, "figure")
	for _, code := range []string{
		"import matplotlib.pyplot as plt\nassert plt.get_fignums() == []\nplt.plot([1, 2])\nplt.show()",
		"import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])",
		"import pandas as pd\n_ = pd.Series([1, 2]).plot()",
	} {
		r := p.ExecuteWarm(t, map[string]any{"code": isWarm + code})
		require.Equal(t, "ok", r.Status, r.Text)
		require.Len(t, r.Images, 1, code)
		require.Equal(t, "image_0.png", r.Images[0].Name)
		require.Len(t, r.Outputs, 1, r.Text)
	}
}

// TestWarmSandboxLosesNothingAtItsEnd: what code leaves to the end of its process
// comes back whole, though a kernel with nothing to do at its end is just killed.
func TestWarmSandboxLosesNothingAtItsEnd(t *testing.T) {
	t.Parallel()
	p := warmService(t, "ending")
	const long = 300_000 // bytes: more than any buffer
	whole := func(want string) func(*testing.T, []byte) {
		return func(t *testing.T, have []byte) { require.Equal(t, want, string(have)) }
	}
	for _, c := range []struct {
		desc, code string
		check      func(*testing.T, []byte) // of out; nil: there is none
	}{
		{"a file left open", "f = open('out', 'w')\n_ = f.write('short')", whole("short")},
		{"one nobody holds", "open('out', 'w').write('x' * 300_000)", whole(strings.Repeat("x", long))},
		{"one in a list", "f = [open('out', 'wb')]\n_ = f[0].write(b'x' * 300_000)", whole(strings.Repeat("x", long))},
		{"an exit handler", "import atexit\n_ = atexit.register(lambda: open('out', 'w').write('at exit'))", whole("at exit")},
		{"a finalizer of a class", `class Late:
    def __del__(self): open('out', 'w').write('finalized')
late = Late()`, whole("finalized")},
		{"a finalizer of a class of a dead name", `def make():
    class Late:
        def __del__(self): open('out', 'w').write('finalized')
    return [Late()]
late = make()`, whole("finalized")},
		{"a finalizer of weakref", "import weakref\nclass A: pass\na = A()\n_ = weakref.finalize(a, lambda: open('out', 'w').write('finalized'))", whole("finalized")},
		{"a generator that is not done", `def numbers():
    try:
        yield 1
    finally:
        open('out', 'w').write('finally')
g = numbers()
_ = next(g)`, whole("finally")},
		{"a context that is not left", `from contextlib import contextmanager
@contextmanager
def context():
    try:
        yield
    finally:
        open('out', 'w').write('left')
held = context()
held.__enter__()`, whole("left")},
		{"a class with a finalizer and no fields", `class Late:
    __slots__ = ()
    def __del__(self): open('out', 'w').write('finalized')
late = Late()`, whole("finalized")},
		{"an archive", "import zipfile\nz = zipfile.ZipFile('out', 'w')\nz.writestr('inner.txt', 'inside')", func(t *testing.T, have []byte) {
			z, err := zip.NewReader(bytes.NewReader(have), int64(len(have)))
			require.NoError(t, err)
			require.Len(t, z.File, 1)
		}},
		{"a database", "import sqlite3\ndb = sqlite3.connect('out')\n_ = db.execute('create table t (word)')\n_ = db.execute(\"insert into t values ('inserted')\")\ndb.commit()", func(t *testing.T, have []byte) {
			require.True(t, bytes.HasPrefix(have, []byte("SQLite format 3\x00")))
			require.Contains(t, string(have), "inserted")
		}},
		{"a columnar file", "import pyarrow as pa, pyarrow.parquet as pq\nt = pa.table({'a': [1]})\nw = pq.ParquetWriter('out', t.schema)\nw.write_table(t)", func(t *testing.T, have []byte) {
			require.True(t, bytes.HasSuffix(have, []byte("PAR1")), "its footer")
		}},
		{"a thread that is no daemon", `import threading, time
def late():
    time.sleep(.3)
    open('out', 'w').write('from a thread')
threading.Thread(target=late).start()`, whole("from a thread")},
		{"a child that still runs", "import subprocess\n_ = subprocess.Popen(['sh', '-c', 'sleep 60; touch out'])", nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			asked := time.Now()
			r := p.ExecuteWarm(t, map[string]any{"code": isWarm + c.code})
			require.Equal(t, "ok", r.Status, r.Text)
			if c.check == nil {
				require.Empty(t, r.Files)
				require.Less(t, time.Since(asked), 30*time.Second, "nobody waits for it")
				return
			}
			require.Len(t, r.Files, 1)
			require.Equal(t, "/mnt/data/out", r.Files[0].Path)
			status, served := service.Get(t, r.Files[0].URL)
			require.Equal(t, http.StatusOK, status)
			c.check(t, served)
		})
	}
}
