package doctor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/doctor"
	"notebox/runner"
	"notebox/runner/docker"
	"notebox/storage"
)

// web is a server whose clock differs, and which has no other page than one at its root.
func web(t *testing.T, behind time.Duration) string { return cached(t, behind, 0) }

// cached is web behind a cache, which has had the page for that time.
func cached(t *testing.T, behind, age time.Duration) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.URL.RawQuery != "" {
			t.Errorf("asked for %s", r.URL)
		}
		said := time.Now().Add(-behind)
		if age > 0 {
			said = said.Add(-age)
			w.Header().Set("Age", strconv.Itoa(int(age.Seconds())))
		}
		w.Header().Set("Date", said.UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestClock(t *testing.T) {
	t.Parallel()
	own := doctor.OtherClock{Of: "the daemon's", Read: func(context.Context) (doctor.Reading, error) { return doctor.Reading{Own: true}, nil }}
	daemon := func(behind time.Duration) doctor.OtherClock {
		return doctor.OtherClock{Of: "the daemon's", Read: func(context.Context) (doctor.Reading, error) { return doctor.Reading{Behind: behind}, nil }}
	}
	at := func(url string) doctor.OtherClock { return doctor.WebClock("the store's", url) }
	for _, c := range []struct {
		desc          string
		made          time.Time
		others        []doctor.OtherClock
		level         doctor.Level
		message, mend string
	}{
		{"there is none", time.Time{}, []doctor.OtherClock{own}, doctor.OK, "no other to compare it with", ""},
		{"all agree", time.Time{}, []doctor.OtherClock{daemon(0), at(web(t, 0) + "/a?signature=1")}, doctor.OK, "agrees within 5s with the daemon's and the store's", ""},
		{"the daemon's is behind", time.Time{}, []doctor.OtherClock{daemon(time.Hour)}, doctor.Wrong, "the daemon's clock is 1h0m0s behind this machine's", "NTP"},
		{"the store's is ahead", time.Time{}, []doctor.OtherClock{own, at(web(t, -time.Hour))}, doctor.Wrong, "ahead of this machine's", "NTP"},
		{"one does not answer", time.Time{}, []doctor.OtherClock{daemon(0), at("http://127.0.0.1:1")}, doctor.OK, "with the daemon's", ""},
		{"the only other one does not answer", time.Time{}, []doctor.OtherClock{own, at("http://127.0.0.1:1")}, doctor.Skipped, "no answer: the store's (", "Mend that first."},
		{"one of a cache", time.Time{}, []doctor.OtherClock{daemon(0), at(cached(t, 0, time.Hour))}, doctor.OK, "and the store's", ""},
		{"one of a cache that is behind", time.Time{}, []doctor.OtherClock{daemon(0), at(cached(t, time.Hour, time.Hour))}, doctor.Wrong, "the store's clock is 1h0m0s behind", "NTP"},
		{"a URL of this machine", time.Time{}, []doctor.OtherClock{own, at(web(t, 0))}, doctor.OK, "no other to compare it with", ""},
		{"before the program was made", time.Now().Add(time.Hour), []doctor.OtherClock{own}, doctor.Wrong, "this program was made at", "NTP"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			found := lines(t, doctor.Clock(c.made, c.others...))["clock"]
			require.Equal(t, c.level, found.Level, found)
			require.Contains(t, found.Message, c.message)
			require.Contains(t, found.Mend, c.mend)
		})
	}
}

// TestDaemonClock: what a daemon says of its time.
func TestDaemonClock(t *testing.T) {
	late := daemon(t, func(i map[string]any) { i["SystemTime"] = time.Now().Add(-time.Hour).Format(time.RFC3339Nano) })
	read, err := doctor.DaemonClock(late).Read(t.Context())
	require.NoError(t, err)
	require.InDelta(t, time.Hour, read.Behind, float64(time.Minute))
	require.False(t, read.Own, "it is asked by TCP")
	_, err = doctor.DaemonClock(daemon(t, func(i map[string]any) { delete(i, "SystemTime") })).Read(t.Context())
	require.ErrorContains(t, err, "does not tell its time")
}

// TestDaemonClockOfThisHost: a daemon behind a local socket has this machine's clock if its folder
// is here, and not if it is in a machine of its own.
func TestDaemonClockOfThisHost(t *testing.T) {
	folder := t.TempDir()
	for root, own := range map[string]bool{folder: true, folder + "/none": false} {
		read, err := doctor.DaemonClock(aboutOnly{docker.About{Address: "unix:///docker.sock", Folder: root, Clock: time.Now()}}).Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, own, read.Own, root)
	}
}

type aboutOnly struct{ about docker.About }

func (a aboutOnly) About(context.Context) (docker.About, error)   { return a.about, nil }
func (aboutOnly) CanGive(context.Context, runner.Limits) error    { return nil }
func (aboutOnly) Ready(context.Context, runner.Environment) error { return nil }

// TestStoreClock: a store in a cloud has a clock of its own, also if it takes nothing.
func TestStoreClock(t *testing.T) {
	t.Parallel()
	variables := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
	getenv := func(name string) string { return variables[name] }
	_, clock := doctor.Storage(storage.Options{URL: "s3://b?region=x&endpoint=" + web(t, time.Hour), Getenv: getenv})
	require.NotNil(t, clock)
	found := lines(t, doctor.Clock(time.Time{}, *clock))["clock"]
	require.Contains(t, found.Message, "the store's clock is 1h0m0s behind this machine's")
	_, clock = doctor.Storage(storage.Options{URL: "file:///tmp"})
	require.Nil(t, clock)
}
