package main

import (
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner/docker"
)

func TestUserRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, refused string
		want          docker.Users
	}{
		{text: "100000-165535", want: docker.Users{First: 100000, Last: 165535}},
		{text: "1000-1001", want: docker.Users{First: 1000, Last: 1001}},
		{text: "2147483000-2147483647", want: docker.Users{First: 2147483000, Last: 2147483647}},
		{text: "", refused: "not FIRST-LAST"},
		{text: "100000", refused: "not FIRST-LAST"},
		{text: "100000-200000-300000", refused: "not FIRST-LAST"},
		{text: "100000- 200000", refused: "not FIRST-LAST"},
		{text: "-5-7", refused: "not from 1000"},
		{text: "0-5000", refused: "not from 1000"},
		{text: "999-5000", refused: "not from 1000"},
		{text: "100000-4294967295", refused: "to 2147483647"},
		{text: "100000-100000", refused: "less than two ids"},
		{text: "200000-100000", refused: "less than two ids"},
		{text: "60000-70000", refused: "65534 is nobody's"},
		{text: "65535-70000", refused: "65535 no id"},
	} {
		t.Run(c.text, func(t *testing.T) {
			var s settings
			set := flag.NewFlagSet("test", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			s.register(set)
			err := set.Parse([]string{"--sandbox-users", c.text})
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, docker.Users(s.users))
			require.Equal(t, c.text, s.users.String())
		})
	}
}
