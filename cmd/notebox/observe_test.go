package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func observeFlags(t *testing.T, flags ...string) (*observeSettings, error) {
	t.Helper()
	s := new(observeSettings)
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(new(bytes.Buffer))
	s.register(set)
	if err := set.Parse(flags); err != nil {
		return s, err
	}
	return s, s.check()
}

func TestObserveFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc  string
		flags []string
		wrong string
	}{
		{"none", nil, ""},
		{"all", []string{"--log-format", "json", "--log-level", "warn", "--probe-every", "1m"}, ""},
		{"no probes", []string{"--probe-every", "0"}, ""},
		{"another format", []string{"--log-format", "xml"}, "--log-format"},
		{"another level", []string{"--log-level", "loud"}, "log-level"},
		{"a core for probes", []string{"--probe-every", "10ms"}, "--probe-every"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := observeFlags(t, c.flags...)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := observeFlags(t, "--log-format", "json", "--log-level", "warn")
	require.NoError(t, err)
	log := s.logger(&out)
	log.Info("not this")
	log.Warn("this", "run", "run_1", "took", 1500*time.Millisecond)
	var entry map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &entry), "one object: %s", out.String())
	require.Equal(t, "run_1", entry["run"])
	require.Equal(t, 1.5, entry["took"])
	require.Equal(t, slog.LevelWarn.String(), entry["level"])

	out.Reset()
	s, err = observeFlags(t)
	require.NoError(t, err)
	s.logger(&out).Info("this", "run", "run_1")
	require.Contains(t, out.String(), "level=INFO msg=this run=run_1")
}
