package dependencies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
)

// in is an environment with a notation.
func in(notation string) environments.Dependencies {
	name, prefix, _ := strings.Cut(notation, " ")
	return environments.Dependencies{Notation: name, Prefix: prefix}
}

// forms are all that in takes, the last with a prefix.
var forms = []string{"pip", "npm", "apt", "apt r-"}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		notation string
		entries  []string
		want     []string
	}{
		{"pip", nil, nil},
		{"pip", []string{"polars"}, []string{"polars"}},
		{"pip", []string{" Polars == 1.* ", "polars==1.*"}, []string{"polars==1.*"}},
		{"pip", []string{"zope.interface", "A_b"}, []string{"a-b", "zope-interface"}},
		{"pip", []string{"uvicorn[Standard, http_tools]>=0.2,<1,!=0.3.*"}, []string{"uvicorn[http-tools,standard]!=0.3.*,<1,>=0.2"}},
		{"pip", []string{"torch==2.1.0+cpu", "x (>=1)"}, []string{"torch==2.1.0+cpu", "x>=1"}},
		{"pip", []string{"a==1!2.0rc1.post2.dev3", "b~=1.4.2"}, []string{"a==1!2.0rc1.post2.dev3", "b~=1.4.2"}},
		{"pip", []string{"a.zip", "b==1.0+zip", "c==1.0+a-zip"}, []string{"a-zip", "b==1.0+zip", "c==1.0+a-zip"}},
		{"npm", []string{"lodash"}, []string{"lodash"}},
		{"npm", []string{"lodash@^4", "@types/node@>=20 <22 || 23.x"}, []string{"@types/node@>=20 <22 || 23.x", "lodash@^4"}},
		{"npm", []string{"express@latest", "a@1.2.3 - 2", "b@>= 1.0.0-rc.1+b", "c@*"}, []string{"a@1.2.3 - 2", "b@>=1.0.0-rc.1+b", "c@*", "express@latest"}},
		{"apt", []string{"jq", "g++", "r-cran-dplyr=1.1.4-1+b1", "xz=2:1.0~rc1"}, []string{"g++", "jq", "r-cran-dplyr=1.1.4-1+b1", "xz=2:1.0~rc1"}},
		{"apt r-", []string{"MASS", "mass", "r-MASS", "r-mass", "data.table=1.16-1"}, []string{"r-data.table=1.16-1", "r-mass"}},
		{"apt r-", []string{"RColorBrewer=1.1-3~X"}, []string{"r-rcolorbrewer=1.1-3~X"}},
	} {
		set, err := Parse(in(c.notation), c.entries, Policy{})
		require.NoError(t, err, "%v", c.entries)
		require.Equal(t, c.want, set.Entries)
		again, err := Parse(in(c.notation), set.Entries, Policy{})
		require.NoError(t, err)
		require.Equal(t, set, again, "it is its own one form")
	}
}

// hostile is in no notation (F14).
var hostile = []string{
	"", " ", "-", "--index-url=http://x", "-r", "-rrequirements.txt", "--", "-e.", "https://x.org/y.whl", "http://x", "./x", "../x", "/etc/passwd",
	"x/y/z", "~/x", "git+https://x.org/y", "git+ssh://x", "x @ https://x.org/y.whl", "x@https://x.org/y.whl", "x@git+https://y", "x@file:../y",
	"x@npm:y@1", "x@github:a/b", "x@../y", "x@./y", "x@~/y", "x@y.tgz", "x.tgz", "file:x", ";rm -rf /", "x;rm -rf /", "x && y", "x|y", "$(x)", "`x`",
	"x\ny", "x\x00", "x\ty", "x\u202ey", "x; python_version<'3'", "x ; extra == 'y'", "x=='1'", "x===1", "x==1,,y", "x[", "x]", "x[a", "x[--y]", "x>=", "x==1 --hash=sha256:0",
	"x==1.*.*", "x>=1.*", "x==", "x=", "x=1;y", "x=1 y", "@scope", "@scope/", "@/x", "@../x", "@scope/../x", "x@", "x@ ", "x@>=", "x@1 ||", "x-", "bash-",
	"x==1.0+a.zip", "x==1.0+a.WHL", "x==1.0+a.tar.gz", "x==1.0+a.tgz", "x!=1.0+a.tar.bz2", "x==1.0+a.tar.xz", "x==1.0+tar.tar", "x==1.0+a.txz", "x==1.0+a.tlz", "x==1.0+a.tar.lzma,<2",
	"x/stable", "x:amd64", "*", "x*", "%s", "x%20", "x\\y", "'x'", `"x"`, strings.Repeat("x", 257),
}

func TestParseRefuses(t *testing.T) {
	// What is hostile in one notation and fine in another.
	fine := map[string][]string{"apt": {"x.tgz"}, "npm": {"x-", "bash-", "x@ "}, "pip": {"x.tgz", "x[--y]"}}
	for _, notation := range forms {
		for _, entry := range hostile {
			if containsString(fine[strings.Fields(notation)[0]], entry) {
				continue
			}
			_, err := Parse(in(notation), []string{"ok", entry}, Policy{})
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, "%s %q", notation, entry)
			require.Equal(t, 1, invalid.Index)
			require.False(t, invalid.Forbidden)
		}
		_, err := Parse(in(notation), make([]string, maxEntries+1), Policy{})
		require.ErrorContains(t, err, "are more than 64")
	}
	_, err := Parse(in("cargo"), []string{"x"}, Policy{})
	require.ErrorContains(t, err, "not supported")
}

// TestParseTwice: a package that is asked for in two versions is one of them to npm and apt.
func TestParseTwice(t *testing.T) {
	for _, c := range []struct {
		notation string
		entries  []string
		ok       bool
	}{
		{"npm", []string{"a@1", "b", "a@2"}, false},
		{"npm", []string{"b", "a", "a@1"}, false},
		{"npm", []string{"b", "a@>= 1", "a@>=1"}, true},
		{"apt", []string{"bc", "jq", "jq=1"}, false},
		{"apt", []string{"bc", "jq=1", "jq=1"}, true},
		{"apt r-", []string{"bc", "MASS=1", "mass=2"}, false},
		{"pip", []string{"b", "a>1", "a<2"}, true},
	} {
		_, err := Parse(in(c.notation), c.entries, Policy{})
		if c.ok {
			require.NoError(t, err, "%v", c.entries)
			continue
		}
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, "%v", c.entries)
		require.Equal(t, 2, invalid.Index)
		require.Contains(t, invalid.Reason, "a second time")
	}
}

func containsString(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func TestPolicy(t *testing.T) {
	policy := Policy{Allow: []string{"Polars", "zope_interface"}}
	for _, entry := range []string{"polars==1.*", "zope.interface"} {
		_, err := Parse(in("pip"), []string{entry}, policy)
		require.NoError(t, err)
	}
	_, err := Parse(in("pip"), []string{"polars", "six"}, policy)
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	require.True(t, invalid.Forbidden)
	require.Equal(t, 1, invalid.Index)
	require.Contains(t, invalid.Reason, "does not allow six")
	for _, allowed := range []string{"MASS", "mass", "r-mass"} {
		for _, entry := range []string{"MASS", "mass=1", "r-Mass"} {
			_, err := Parse(in("apt r-"), []string{entry}, Policy{Allow: []string{allowed}})
			require.NoError(t, err, "%s %s", allowed, entry)
		}
	}
	_, err = Parse(in("pip"), []string{"polars"}, Policy{Allow: []string{}})
	require.Error(t, err, "an empty list allows nothing")
}

// TestPolicyCheck: a list of names that has something else is noticed at the start.
func TestPolicyCheck(t *testing.T) {
	var all []environments.Environment
	for _, form := range forms {
		of := in(form)
		all = append(all, environments.Environment{Dependencies: &of})
	}
	all = append(all, environments.Environment{})
	require.NoError(t, Policy{}.Check(all))
	require.NoError(t, Policy{Allow: []string{"polars", "Zope.Interface", "@types/node", "g++", "MASS", "r-mass"}}.Check(all))
	for _, allowed := range []string{"polars==1.*", "uvicorn[standard]", "lodash@4", "jq=1", "https://x", "-r", "", "a b", "@types"} {
		require.ErrorContains(t, Policy{Allow: []string{"polars", allowed}}.Check(all), fmt.Sprintf("%q", allowed))
	}
	require.Error(t, Policy{Allow: []string{"@types/node"}}.Check(all[:1]), "in no language that is there")
}

func TestModules(t *testing.T) {
	set, err := Parse(in("pip"), []string{"polars==1.*", "a-b[c]>1", "six"}, Policy{})
	require.NoError(t, err)
	require.Equal(t, []string{"a_b", "polars", "six"}, set.modules(""))
	require.Nil(t, set.modules("bash"))
}

// FuzzParse has whatever is taken be free of what an option, a URL, a path or a shell needs.
func FuzzParse(f *testing.F) {
	for _, entry := range append(hostile, "polars==1.*", "@types/node@>=20 <22 || 23.x", "jq=1.7-1", "a[b,c]~=1.0") {
		for _, notation := range forms {
			f.Add(notation, entry)
		}
	}
	f.Fuzz(func(t *testing.T, notation, entry string) {
		if !slices.Contains(forms, notation) {
			return
		}
		set, err := Parse(in(notation), []string{entry}, Policy{})
		if err != nil || set.Empty() {
			return
		}
		got := set.Entries[0]
		require.LessOrEqual(t, len(got), 2*maxEntryBytes)
		require.NotContains(t, "-./~", got[:1], "%q", got)
		if notation != "npm" {
			require.NotContains(t, got, "/")
			require.NotContains(t, got, "@")
		}
		require.NotContains(t, got, "://")
		require.NotContains(t, got, "/.")
		require.False(t, strings.ContainsAny(got, "\\;&$`'\"\n\r\t\x00(){}#%?"), "%q", got)
		if notation == "pip" {
			require.False(t, strings.ContainsAny(got, " |:^/"), "%q", got)
		}
		again, err := Parse(in(notation), set.Entries, Policy{})
		require.NoError(t, err)
		require.Equal(t, set, again)
	})
}
