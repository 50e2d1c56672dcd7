package main

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// TestRetentionIsAsLongAsLinksWork, or there would be links to nothing.
func TestRetentionIsAsLongAsLinksWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc  string
		flags []string
		ok    bool
	}{
		{"as it is", nil, true},
		{"for ever", []string{"--retention", "0"}, true},
		{"as long", []string{"--retention", "1h", "--url-ttl", "1h"}, true},
		{"shorter", []string{"--retention", "1h"}, false},
		{"negative", []string{"--retention", "-1h"}, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var s settings
			set := flag.NewFlagSet("test", flag.ContinueOnError)
			s.register(set)
			require.NoError(t, set.Parse(c.flags))
			if c.ok {
				require.NoError(t, s.check())
				return
			}
			require.EqualError(t, s.check(), "--retention (0, or at least --url-ttl) is out of range")
		})
	}
}

// TestServiceIDIsNoPath: a worker's control groups are in a folder of that name, and a bind has it in it.
func TestServiceIDIsNoPath(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"": true, "a": true, "Notebox_1.2-b": true, "-a": true,
		"..": false, ".a": false, "../..": false, "a/b": false, "a:b": false, "a b": false, "a\n": false, "ä": false,
	} {
		var s settings
		set := flag.NewFlagSet("test", flag.ContinueOnError)
		s.register(set)
		require.NoError(t, set.Parse([]string{"--service-id", id}))
		if ok {
			require.NoError(t, s.check(), id)
		} else {
			require.ErrorContains(t, s.check(), "--service-id", id)
		}
	}
}

// TestRegistry: nodes of a cluster take all images from one registry.
func TestRegistry(t *testing.T) {
	t.Parallel()
	var s settings
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	s.register(set)
	require.NoError(t, set.Parse([]string{"--kubernetes-registry", "registry.example.org:5000/team/"}))
	require.ErrorContains(t, s.check(), "--engine kubernetes")
	all := []environments.Environment{{Name: "r", Image: "notebox/r:1"}}
	s.useImage(all)
	require.Equal(t, "registry.example.org:5000/team/notebox/r:1", all[0].Image)
}
