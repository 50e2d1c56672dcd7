package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"notebox/runner/docker/builder"
)

// buildSecrets are what the build of an image takes to reach the world from this host, as
// installers of packages do: certificates, and where pip, npm and Go find what they fetch.
func buildSecrets(ctx context.Context) (map[string][]byte, error) {
	var host dependencySettings
	ca, err := host.trusted()
	if err != nil {
		return nil, err
	}
	files, err := host.files()
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{
		builder.SecretCA:  ca,
		builder.SecretPip: keepOptions(files["pip.conf"], pipOption),
		builder.SecretNPM: keepOptions(files["npmrc"], npmOption),
		builder.SecretGo:  goSettings(ctx),
	}
	for name, content := range all {
		if len(content) == 0 {
			delete(all, name)
		}
	}
	return all, nil
}

// What names this host's own files (find-links, cert, cafile, cache) is not for a build.
var (
	pipOption = regexp.MustCompile(`^(index-url|extra-index-url|trusted-host|proxy)$`)
	npmOption = regexp.MustCompile(`^(registry|proxy|https-proxy|noproxy|strict-ssl|@[^:]+:registry|//.*:(_authToken|_auth|_password|username|email))$`)
)

// keepOptions leaves of a file of settings its sections and the options that are wanted, with
// the lines that go on with them.
func keepOptions(conf []byte, wanted *regexp.Regexp) []byte {
	var out bytes.Buffer
	keeping := false
	for line := range strings.Lines(string(conf)) {
		plain := strings.TrimSpace(line)
		switch {
		case plain == "" || plain[0] == '#' || plain[0] == ';':
			continue
		case plain[0] == '[':
			keeping = true
		case line[0] == ' ' || line[0] == '\t': // goes on with the option
		default:
			name, _, _ := strings.Cut(plain, "=")
			if at := strings.Index(name, ": "); at >= 0 { // pip takes that too
				name = name[:at]
			}
			name = strings.TrimSpace(name)
			keeping = wanted.MatchString(name) || wanted.MatchString(strings.ReplaceAll(strings.ToLower(name), "_", "-"))
		}
		if keeping {
			out.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return out.Bytes()
}

// goVariables say where Go finds modules.
var goVariables = []string{"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE"}

// goSettings are assignments for a shell: what this host's Go says, or its variables if it has
// none.
func goSettings(ctx context.Context) []byte {
	values := map[string]string{}
	for _, name := range goVariables {
		values[name] = os.Getenv(name)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, goVariables...)...)
	// In a folder that is nobody's: a go.mod or go.work of the one where this program was called
	// may name another Go, which would be fetched and run.
	c.Dir, c.Env = "/", append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	if said, err := c.Output(); err == nil {
		_ = json.Unmarshal(said, &values) // else the variables stand
	}
	var out bytes.Buffer
	for _, name := range goVariables {
		if values[name] != "" {
			fmt.Fprintf(&out, "%s='%s'\n", name, strings.ReplaceAll(values[name], "'", `'\''`))
		}
	}
	return out.Bytes()
}

// proxies are those of this host. BuildKit passes them to steps, and leaves them out of the
// image and its history.
func proxies() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if value := os.Getenv(name); value != "" {
			all[name] = value
		}
	}
	return all
}
