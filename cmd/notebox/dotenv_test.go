package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseDotenv(t *testing.T) {
	for _, c := range []struct{ desc, text, want string }{
		{"plain", "A=b\r\n\n# c\n A = b c ", "A=b|A=b c"},
		{"export", "export A=b", "A=b"},
		{"double quotes", `A="b # \"c\"\n"`, "A=b # \"c\"\n"},
		{"single quotes", `A='b\n "c"' # d`, `A=b\n "c"`},
		{"remark", "A=b # c\nB=b#c", "A=b|B=b#c"},
		{"empty is not set", "A=\nB=''\nC= # c\nD=d", "D=d"},
		{"equal signs and a quote within", `A=b==` + "\nB=it's", `A=b==|B=it's`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var got []string
			require.NoError(t, parseDotenv(strings.NewReader(c.text), func(name, value string) error {
				got = append(got, name+"="+value)
				return nil
			}))
			require.Equal(t, c.want, strings.Join(got, "|"))
		})
	}
	err := parseDotenv(strings.NewReader("A=b\nsk-secret\n"), func(string, string) error { return nil })
	require.EqualError(t, err, "line 2 is not NAME=value")
}

func TestVariablesOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".env")
	require.NoError(t, os.WriteFile(name, []byte("# model\nOPENAI_API_KEY=\"of the file\"\nOTHER=x\n"), 0o600))
	getenv, err := withFile(func(n string) string { return map[string]string{"OTHER": "of the environment"}[n] }, name)
	require.NoError(t, err)
	require.Equal(t, "of the file", getenv("OPENAI_API_KEY"))
	require.Equal(t, "of the environment", getenv("OTHER"))
	require.Empty(t, getenv("NONE"))
	getenv, err = withFile(func(string) string { return "y" }, name+".none")
	require.NoError(t, err)
	require.Equal(t, "y", getenv("OTHER"))
}
