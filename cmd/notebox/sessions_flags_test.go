package main

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSessionFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc   string
		flags  []string
		refuse string
	}{
		{"as they are", nil, ""},
		{"no sessions", []string{"--max-sessions", "0"}, ""},
		{"as long as any", []string{"--session-ttl", "2h", "--max-session-ttl", "2h"}, ""},
		{"longer than any", []string{"--session-ttl", "2h", "--max-session-ttl", "1h"}, "--max-session-ttl (at least --session-ttl) is out of range"},
		{"no time", []string{"--session-ttl", "0"}, "--session-ttl is out of range"},
		{"no idle time", []string{"--session-idle", "0"}, "--session-idle is out of range"},
		{"a negative number", []string{"--max-sessions", "-1"}, "--max-sessions is out of range"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var s settings
			set := flag.NewFlagSet("test", flag.ContinueOnError)
			s.register(set)
			require.NoError(t, set.Parse(c.flags))
			if err := s.check(); c.refuse == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.refuse)
			}
		})
	}
}
