package languages

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

// What docs/environments.md calls the folder of the operator's languages, and the service.
const (
	documentedFolder  = "/srv/languages"
	documentedService = "http://127.0.0.1:8080"
)

// block is one of a document's fenced code blocks that has a name.
var block = regexp.MustCompile("(?ms)^```\\w+ (\\S+)\n(.*?)^```$")

func environmentsDocument(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/environments.md")
	require.NoError(t, err)
	return string(raw)
}

// TestEnvironmentsDocument does what the document says, from its files to its answer.
func TestEnvironmentsDocument(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	blocks := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(environmentsDocument(t), -1) {
		blocks[m[1]] = m[2]
		if name, text := filepath.FromSlash(m[1]), m[2]; strings.Contains(m[1], "/") {
			require.NoError(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
		}
	}
	said := func(name string) string {
		require.NotEmpty(t, blocks[name], name)
		return strings.ReplaceAll(blocks[name], documentedFolder, folder)
	}
	notebox, err := starter.Notebox()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Mkdir(bin+"/bin", 0o755))
	require.NoError(t, os.Symlink(notebox, bin+"/bin/notebox"))

	build := exec.Command("bash", "-c", said("build"))
	build.Dir = "../../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	url := serveDocumented(t, bin, said("serve"))
	request := strings.ReplaceAll(said("request"), documentedService, url)
	require.Contains(t, request, url)
	raw, err := exec.Command("bash", "-c", request).Output()
	require.NoError(t, err)
	var r service.Reply
	service.Decode(t, raw, &r)
	require.Equal(t, "ok", r.Status, "%s", raw)
	require.Equal(t, said("answer"), r.Text)

	for mediaType, body := range map[string]string{
		"text/x-lua":       "print('raw')",
		"application/json": `{"entrypoint":"main.lua","files":[{"name":"main.lua","content":"cHJpbnQoJ3JhdycpCg=="}]}`,
	} {
		status, raw := service.Post(t, url+"/v1/execute", mediaType, []byte(body))
		require.Equal(t, 200, status, "%s", raw)
		service.Decode(t, raw, &r)
		require.Equal(t, "raw\n", r.Text)
	}
	failed, raw := service.Post(t, url+"/v1/execute", "text/x-lua", []byte("local t = nil\nprint('before')\nprint(t.x)"))
	require.Equal(t, 200, failed)
	service.Decode(t, raw, &r)
	require.Equal(t, "error", r.Status)
	require.Contains(t, r.Text, "before\n")
	require.Contains(t, r.Text, "LuaError: cell:3: attempt to index a nil value")
}

// serveDocumented runs the document's command in a folder with bin/notebox, in a state
// folder of its own.
func serveDocumented(t *testing.T, folder, command string) (url string) {
	t.Helper()
	serve := exec.Command("bash", "-c", "exec "+command)
	serve.Dir = folder
	serve.Env = append(os.Environ(), "NOTEBOX_LISTEN=127.0.0.1:0",
		"NOTEBOX_STATE_DIR="+t.TempDir(), "NOTEBOX_STORAGE=mem://", "NOTEBOX_POOL_SIZE=0", "NOTEBOX_MODEL=off")
	p, err := starter.Run(serve, folder)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	require.NoError(t, p.Await(t.Context()))
	return p.URL
}

// TestEnvironmentsDocumentHasEveryField holds its table against what is read.
func TestEnvironmentsDocumentHasEveryField(t *testing.T) {
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(environmentsDocument(t), -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, name[1])
		}
	}
	there := jsonNamesOf(reflect.TypeFor[environments.Environment](), "")
	slices.Sort(documented)
	slices.Sort(there)
	require.Equal(t, there, documented)
}

// jsonNamesOf are the names of a type's fields in JSON, "kernel.name" for those within others.
func jsonNamesOf(typ reflect.Type, within string) (names []string) {
	unmarshaler := reflect.TypeFor[json.Unmarshaler]()
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, of := within+field.Tag.Get("json"), field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case field.Tag.Get("json") == "-":
		case of.Kind() == reflect.Struct && !reflect.PointerTo(of).Implements(unmarshaler):
			names = append(names, jsonNamesOf(of, name+".")...)
		default:
			names = append(names, name)
		}
	}
	return names
}
