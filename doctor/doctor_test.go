package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/doctor"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/docker"
)

func look(level doctor.Level) func(context.Context) doctor.Finding {
	return func(context.Context) doctor.Finding { return doctor.Finding{Level: level} }
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc   string
		checks []doctor.Check
		works  bool
		levels []doctor.Level
	}{
		{"none", nil, true, nil},
		{"a warning", []doctor.Check{{Name: "a", Vital: true, Look: look(doctor.Warning)}}, true, []doctor.Level{doctor.Warning}},
		{"wrong, and not vital", []doctor.Check{{Name: "a", Look: look(doctor.Wrong)}}, true, []doctor.Level{doctor.Wrong}},
		{"wrong, and vital", []doctor.Check{{Name: "a", Vital: true, Look: look(doctor.Wrong)}}, false, []doctor.Level{doctor.Wrong}},
		{
			"vital, and skipped", []doctor.Check{
				{Name: "a", Look: look(doctor.Wrong)},
				{Name: "b", After: []string{"a"}, Look: look(doctor.OK)},
				{Name: "c", After: []string{"b"}, Vital: true, Look: look(doctor.OK)},
				{Name: "d", Look: look(doctor.OK)},
			}, false, []doctor.Level{doctor.Wrong, doctor.Skipped, doctor.Skipped, doctor.OK},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var told []doctor.Line
			r := doctor.Run(t.Context(), c.checks, func(l doctor.Line) { told = append(told, l) })
			require.Equal(t, c.works, r.Works)
			require.Equal(t, told, r.Checks)
			var levels []doctor.Level
			for _, line := range r.Checks {
				levels = append(levels, line.Level)
			}
			require.Equal(t, c.levels, levels)
		})
	}
}

// TestHang: a look that heeds nothing is given up, and the others are made.
func TestHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		hangs := func(context.Context) doctor.Finding { <-free; return doctor.Finding{} }
		r := doctor.Run(t.Context(), []doctor.Check{{Name: "a", Patience: time.Second, Look: hangs}, {Name: "b", Look: look(doctor.OK)}}, nil)
		require.Equal(t, doctor.Wrong, r.Checks[0].Level)
		require.Equal(t, "no answer within 1s", r.Checks[0].Message)
		require.Equal(t, doctor.OK, r.Checks[1].Level)
	})
}

// daemon answers as Docker does to what doctor asks; change makes it another one.
func daemon(t *testing.T, change func(info map[string]any)) *docker.Engine {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case strings.HasSuffix(r.URL.Path, "/info"):
			info := map[string]any{
				"ServerVersion": "20.10.24", "OperatingSystem": "Debian", "KernelVersion": "6.1.0", "NCPU": 2, "MemTotal": 8 << 30,
				"SystemTime": time.Now().Format(time.RFC3339Nano), "CgroupVersion": "2", "CgroupDriver": "systemd",
				"MemoryLimit": true, "PidsLimit": true, "DefaultRuntime": "runc", "Runtimes": map[string]any{"runc": map[string]any{}},
				"SecurityOptions": []string{"name=apparmor", "name=seccomp,profile=default"},
			}
			change(info)
			_ = json.NewEncoder(w).Encode(info)
		case strings.Contains(r.URL.Path, "/images/there"):
			_ = json.NewEncoder(w).Encode(map[string]any{"Id": "sha256:1"})
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": "No such image"})
		}
	}))
	t.Cleanup(server.Close)
	return engineAt(t, "tcp://"+server.Listener.Addr().String(), "")
}

func engineAt(t *testing.T, address, runtime string) *docker.Engine {
	t.Helper()
	t.Setenv("DOCKER_HOST", address)
	e, err := docker.New(docker.Options{ServiceID: "test-doctor", Runtime: runtime, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	return e
}

func lines(t *testing.T, checks ...doctor.Check) map[string]doctor.Line {
	t.Helper()
	out := map[string]doctor.Line{}
	for _, line := range doctor.Run(t.Context(), checks, nil).Checks {
		out[line.Check] = line
		require.Equal(t, line.Level == doctor.OK, line.Mend == "", "what is not well can be mended: %+v", line)
	}
	return out
}

func TestEngine(t *testing.T) {
	for _, c := range []struct {
		desc          string
		change        func(info map[string]any)
		check         string
		level         doctor.Level
		message, mend string
	}{
		{"all is well", func(map[string]any) {}, "engine", doctor.OK, "Docker 20.10.24 (API 1.41) at tcp://", ""},
		{"cgroup v2", func(map[string]any) {}, "cgroups", doctor.OK, "cgroup v2, driver systemd", ""},
		{"cgroup v1", func(i map[string]any) { i["CgroupVersion"] = "1" }, "cgroups", doctor.Warning, "outside its limit of memory", "cgroup v2"},
		{"no control groups", func(i map[string]any) { i["CgroupDriver"] = "none" }, "cgroups", doctor.Wrong, "cannot limit", "controllers"},
		{"no limit of memory", func(i map[string]any) { i["MemoryLimit"] = false }, "cgroups", doctor.Wrong, "cannot limit", "cgroup_enable=memory"},
		{"its runtime", func(map[string]any) {}, "runtime", doctor.OK, "runc", ""},
		{"a runtime that it lacks", func(i map[string]any) { i["DefaultRuntime"] = "runsc" }, "runtime", doctor.Wrong, `no runtime "runsc"; it has runc`, "--sandbox-runtime"},
		{"no seccomp", func(i map[string]any) { i["SecurityOptions"] = []string{} }, "seccomp", doctor.Warning, "does not filter", "CONFIG_SECCOMP_FILTER"},
		{"AppArmor", func(map[string]any) {}, "apparmor", doctor.OK, "workers of cells have none", ""},
		{"no AppArmor", func(i map[string]any) { i["SecurityOptions"] = []string{"name=seccomp"} }, "apparmor", doctor.OK, "no AppArmor", ""},
		{"enough", func(map[string]any) {}, "limits", doctor.OK, "2.0 GiB", ""},
		{"too little memory", func(i map[string]any) { i["MemTotal"] = 1 << 30 }, "limits", doctor.Wrong, "has 1073741824", "--memory"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			found := lines(t, doctor.Engine(daemon(t, c.change), runner.DefaultLimits())...)
			require.Equal(t, c.level, found[c.check].Level, found)
			require.Contains(t, found[c.check].Message, c.message)
			require.Contains(t, found[c.check].Mend, c.mend)
		})
	}
}

func TestNoDaemon(t *testing.T) {
	e := engineAt(t, "unix://"+t.TempDir()+"/dead.sock", "")
	languages := []doctor.Language{{Environment: runner.Environment{Name: "jupyter", Image: "there:1"}, Shown: "Python"}}
	found := lines(t, append(doctor.Engine(e, runner.DefaultLimits()), doctor.Images(e, languages)...)...)
	require.Equal(t, doctor.Wrong, found["engine"].Level)
	require.Contains(t, found["engine"].Message, "dead.sock")
	require.Contains(t, found["engine"].Mend, "systemctl start docker")
	require.Equal(t, doctor.Skipped, found["image jupyter"].Level)
	require.Equal(t, "Mend engine first.", found["cgroups"].Mend)
	require.NotContains(t, found["engine"].Mend, "scripts/", "a binary has no checkout")
	clock := lines(t, doctor.Clock(time.Time{}, doctor.DaemonClock(e)))["clock"]
	require.Equal(t, doctor.Skipped, clock.Level)
	require.Contains(t, clock.Message, "no answer: the daemon's (")

	none := lines(t, doctor.Engine(doctor.NoDaemon{Why: errors.New("unable to parse docker host")}, runner.DefaultLimits())...)
	require.Contains(t, none["engine"].Message, "unable to parse docker host")
	require.Contains(t, none["engine"].Mend, "DOCKER_HOST")
}

func TestImages(t *testing.T) {
	e := daemon(t, func(map[string]any) {})
	of := func(name, image string) doctor.Language {
		return doctor.Language{Environment: runner.Environment{Name: name, Image: image}, Shown: strings.ToUpper(name)}
	}
	r := doctor.Run(t.Context(), doctor.Images(e, []doctor.Language{of("jupyter", "there:1"), of("r", "gone:1"), of("typescript", "there:1")}), nil)
	require.True(t, r.Works)
	require.Len(t, r.Checks, 2, "one that is shared is looked at once")
	require.Equal(t, doctor.OK, r.Checks[0].Level)
	require.Equal(t, doctor.Warning, r.Checks[1].Level)
	require.Equal(t, "Build it: notebox image build r.", r.Checks[1].Mend)
	r = doctor.Run(t.Context(), doctor.Images(e, []doctor.Language{of("jupyter", "gone:1")}), nil)
	require.False(t, r.Works)
	require.Equal(t, "JUPYTER has no image gone:1: no code runs without it", r.Checks[0].Message)
	given := of("jupyter", "mine:1")
	given.Given = true
	r = doctor.Run(t.Context(), doctor.Images(e, []doctor.Language{given}), nil)
	require.Contains(t, r.Checks[0].Mend, "docker pull mine:1")
}

type probed struct {
	runner.Engine
	err     error
	started *int
}

// Start fails: of what starts, tests/e2e/operation looks at the walls.
func (p probed) Start(context.Context, runner.Environment, runner.Limits) (runner.Sandbox, error) {
	if p.started != nil {
		*p.started++
	}
	return nil, errors.New("none starts")
}

func (p probed) Probe(context.Context, runner.Environment, runner.Limits) error { return p.err }

// TestNoCells: the wall that is missing is named, with what to do.
func TestNoCells(t *testing.T) {
	t.Parallel()
	missing := &cells.NoCells{Wall: "user_namespace", Why: errors.New("EPERM"), Do: "let unprivileged users have user namespaces"}
	for _, required := range []bool{false, true} {
		started := 0
		s := doctor.Sandboxes{Containers: probed{started: &started}, Cells: probed{err: missing}, Required: required, Start: time.Minute}
		found := lines(t, s.Checks()[0])[doctor.NameIsolation]
		require.Contains(t, found.Message, "as the wall user_namespace of cells is missing: EPERM")
		require.Contains(t, found.Mend, "let unprivileged users have user namespaces")
		require.Equal(t, required, started == 0, "a container matters if runs get one")
		require.Equal(t, map[bool]doctor.Level{true: doctor.Wrong, false: doctor.Warning}[required], found.Level)
	}
	found := lines(t, doctor.Sandboxes{Containers: probed{}, Start: time.Minute}.Checks()[0])[doctor.NameIsolation]
	require.Equal(t, doctor.Skipped, found.Level, "walls that nobody saw are not well")
	require.Equal(t, "Mend run first.", found.Mend)
}
