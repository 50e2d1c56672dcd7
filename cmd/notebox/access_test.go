package main

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimitsPassword is not shown, whatever is wrong with the URL.
func TestLimitsPassword(t *testing.T) {
	for _, c := range []struct{ desc, url, shown, says string }{
		{"as it should be", "redis://user:secret-word@host:6379/0?prefix=one", "redis://xxxxx@host:6379/0?prefix=one", ""},
		{"no database", "rediss://user:secret-word@host/secret-word", "rediss://xxxxx@host/secret-word", "--limits: its path must be the number of a database"},
		{"no port", "redis://user:secret-word@host:port", "redis://xxxxx@host:port", "--limits: it is no URL"},
		{"another server", "amqp://user:secret-word@host", "amqp://xxxxx@host", "--limits: it must begin with redis://host or rediss://host"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Setenv("NOTEBOX_LIMITS", c.url)
			var s settings
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			s.register(flags)
			all, err := inForce(flags, &s)
			require.NoError(t, err)
			require.Contains(t, all, setting{Name: "limits", Variable: "NOTEBOX_LIMITS", Value: c.shown, From: fromVariable})

			p := &program{settings: s}
			store, err := p.openLimits()
			if c.says == "" {
				require.NoError(t, err)
				require.NotNil(t, store)
				require.EqualError(t, p.openKeys(), "--limits is for those of API keys: set --api-keys-file")
				require.NoError(t, p.close())
				return
			}
			require.EqualError(t, err, c.says)
		})
	}
}
