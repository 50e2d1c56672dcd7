package storage

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var started = time.Date(2026, 7, 1, 23, 30, 0, 0, time.FixedZone("west", -2*3600))

const prefix = "runs/2026-07-02/run_1/files/"

func TestRunKey(t *testing.T) {
	for _, test := range []struct {
		desc string
		run  string
		kind Kind
		name string
		want string
	}{
		{"file", "run_1", KindFile, "out.csv", prefix + "out.csv"},
		{"image", "run_1", KindImage, "image_0.png", "runs/2026-07-02/run_1/images/image_0.png"},
		{"notebook", "run_1", KindNotebook, "ignored", "runs/2026-07-02/run_1/notebook.ipynb"},
		{"result", "run_1", KindResult, "", "runs/2026-07-02/run_1/result.json"},
		{"folder", "run_1", KindFile, "plots/a b.png", prefix + "plots=/a b.png"},
		{"no escape needed", "run_1", KindFile, "数据 (1)_é-.ipynb", prefix + "数据 (1)_é-.ipynb"},
		{"escape itself", "run_1", KindFile, "a=1.csv", prefix + "a=3D1.csv"},
		{"percent", "run_1", KindFile, "100%.csv", prefix + "100=25.csv"},
		{"newline, right-to-left mark", "run_1", KindFile, "a\nb\u202ec", prefix + "a=0Ab=E2=80=AEc"},
		{"parents", "run_1", KindFile, "../..", prefix + ".=2E=/.=2E"},
		{"dot inside and at the start", "run_1", KindFile, ".a.b", prefix + ".a.b"},
		{"spaces at the ends", "run_1", KindFile, " a ", prefix + "=20a=20"},
		{"sidecar", "run_1", KindFile, "a.attrs", prefix + "a=2Eattrs"},
		{"sidecar where case counts nothing", "run_1", KindFile, "a.ATTRS", prefix + "a=2EATTRS"},
		{"temporary", "run_1", KindFile, ".tmp", prefix + "=2Etmp"},
		{"only inside", "run_1", KindFile, "a.attrs.tmp.csv", prefix + "a.attrs.tmp.csv"},
		{"gocloud's escape", "run_1", KindFile, "a___0x2f__b", prefix + "a_=5F_0x2f__b"},
		{"empty", "run_1", KindFile, "", prefix + "=_"},
		{"absolute", "run_1", KindFile, "/a", prefix + "=_=/a"},
		{"not UTF-8", "run_1", KindFile, "a\xff", prefix + "a=FF"},
		{"broken", "run_1", KindFile, strings.Repeat("a", 255), prefix + strings.Repeat("a", 222) + "=-/" + strings.Repeat("a", 33)},
		{"too long", "run_1", KindFile, strings.Repeat("a/", 500) + "a.csv", prefix + "=hbed00b0ab9dc5f3969368f1a842f34c3=/a.csv"},
		{"hostile run id", "../x", KindFile, "a", "runs/2026-07-02/..=2Fx/files/a"},
		{"long run id", strings.Repeat("r", 65), KindFile, "a", "runs/2026-07-02/=hc75c6854556410765b0e5fac497167e9/files/a"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			require.Equal(t, test.want, RunKey(started, test.run, test.kind, test.name))
		})
	}
}

func TestNameOf(t *testing.T) {
	for _, test := range []struct{ desc, key, want string }{
		{"notebook", RunKey(started, "run_1", KindNotebook, ""), "notebook.ipynb"},
		{"too long: the last part is kept", RunKey(started, "run_1", KindFile, strings.Repeat("a/", 500)+"\n.csv"), "\n.csv"},
		{"the longest last part, all escaped", RunKey(started, "run_1", KindFile, strings.Repeat("a/", 500)+strings.Repeat("\n", 255)), strings.Repeat("\n", 255)},
		{"too deep", RunKey(started, "run_1", KindFile, strings.Repeat("/", 200)+"x"), "x"},
		{"a last part that no file system has", RunKey(started, "run_1", KindFile, strings.Repeat("\n", 400)), "=h3f813151a9e160de072723ab606b7b7c"},
		{"not of a run", "probe", "probe"},
		{"not ours", "runs/2026-07-02/run_1/files/a=ZZ/b=", "b="},
		{"not ours: a folder without its mark", "runs/2026-07-02/run_1/files/a/b", "b"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			require.Equal(t, test.want, nameOf(test.key))
		})
	}
}

func FuzzRunKey(f *testing.F) {
	for _, seed := range []string{
		"out.csv", "a/b", "..", "../x", "a.attrs", "x.tmp", "=", "=-", "=_", "=h", "a=-/b", "=41", "\n", "\u202e", " ", "a/",
		strings.Repeat("=", 300), strings.Repeat("/", 300), strings.Repeat("数", 100), "\xff\xfe", "a\x00b",
	} {
		f.Add(seed, seed+"/")
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		key := RunKey(started, "run_1", KindFile, name)
		require.True(t, validKey(key), "%q", key)
		require.True(t, utf8.ValidString(key))
		require.LessOrEqual(t, len(key), len(prefix)+maxNameBytes)
		require.True(t, strings.HasPrefix(key, prefix), "%q", key)
		require.Equal(t, filepath.Join("/store", key), "/store/"+key, "a file system resolves nothing in it")
		require.NotContains(t, key, "%")
		if !strings.HasPrefix(key, prefix+digestMark) {
			require.Equal(t, name, nameOf(key))
		}
		if name != other {
			require.NotEqual(t, key, RunKey(started, "run_1", KindFile, other))
		}
		require.True(t, validKey(RunKey(started, name, KindImage, other)))
		require.False(t, strings.HasPrefix(RunKey(started, "run_1", KindFile, other), key+"/"), "no object is another's folder")

		_, _ = unescapeName(name)
		_ = nameOf(name)
	})
}
