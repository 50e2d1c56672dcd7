package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// composeFile is what the test asks of compose.yaml.
type composeFile struct {
	Services map[string]struct {
		Image, Command string
		Profiles       []string
		Environment    []string
		Ports          []string
		Volumes        []string
		User           string
		Privileged     bool
		ReadOnly       bool     `yaml:"read_only"`
		CapAdd         []string `yaml:"cap_add"`
		CapDrop        []string `yaml:"cap_drop"`
		SecurityOpt    []string `yaml:"security_opt"`
		NetworkMode    string   `yaml:"network_mode"`
		PID            string   `yaml:"pid"`
	}
	Volumes map[string]any
}

func readYAML(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, v), path)
}

// hostPath is the file in the checkout that a container of a service has at a path; "" if none.
func (c composeFile) hostPath(service, path string) string {
	for _, volume := range c.Services[service].Volumes {
		host, inside, _ := strings.Cut(strings.TrimSuffix(volume, ":ro"), ":")
		if rest, found := strings.CutPrefix(path, inside); found && strings.HasPrefix(host, "./") {
			return filepath.Join("../../..", host, rest)
		}
	}
	return ""
}

// TestComposeMonitoring: what Prometheus and Grafana are told fits compose.yaml: files are mounted
// where they are looked for, and hosts are services.
func TestComposeMonitoring(t *testing.T) {
	t.Parallel()
	var compose composeFile
	readYAML(t, "../../../compose.yaml", &compose)

	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			Authorization struct {
				File string `yaml:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	config := regexp.MustCompile(`--config\.file=(\S+)`).FindStringSubmatch(compose.Services["prometheus"].Command)
	require.NotNil(t, config)
	readYAML(t, compose.hostPath("prometheus", config[1]), &prometheus)
	require.Len(t, prometheus.RuleFiles, 1)
	require.FileExists(t, compose.hostPath("prometheus", prometheus.RuleFiles[0]))
	require.Len(t, prometheus.ScrapeConfigs, 1)
	require.Equal(t, "../../../deploy/prometheus/key", compose.hostPath("prometheus", prometheus.ScrapeConfigs[0].Authorization.File))
	require.Equal(t, []string{"notebox:8080"}, prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets)

	const provisioning = "/etc/grafana/provisioning/"
	var sources struct {
		Datasources []struct {
			Type, URL string
			IsDefault bool `yaml:"isDefault"`
		}
	}
	readYAML(t, compose.hostPath("grafana", provisioning+"datasources/prometheus.yaml"), &sources)
	require.Len(t, sources.Datasources, 1)
	require.Equal(t, "prometheus", sources.Datasources[0].Type)
	require.Equal(t, "http://prometheus:9090", sources.Datasources[0].URL)
	require.True(t, sources.Datasources[0].IsDefault, "the dashboard takes the default")

	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, compose.hostPath("grafana", provisioning+"dashboards/notebox.yaml"), &dashboards)
	require.Len(t, dashboards.Providers, 1)
	board := dashboards.Providers[0].Options.Path + "/notebox.json"
	require.Equal(t, "../../../examples/grafana/notebox.json", compose.hostPath("grafana", board))
	require.Contains(t, compose.Services["grafana"].Environment, "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH="+board)
}

// TestComposeContains: no service is root, has capabilities or may get any, and the Docker socket is
// the service's alone. What one has beyond that is named here.
func TestComposeContains(t *testing.T) {
	t.Parallel()
	var compose composeFile
	readYAML(t, "../../../compose.yaml", &compose)
	require.Contains(t, compose.Services, "notebox")
	adds := map[string][]string{"caddy": {"NET_BIND_SERVICE"}}
	writes := map[string]bool{"grafana": true}
	for name, service := range compose.Services {
		require.Regexp(t, `^[1-9][0-9]*:[0-9]+$`, service.User, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Equal(t, adds[name], service.CapAdd, name)
		require.Equal(t, []string{"no-new-privileges:true"}, service.SecurityOpt, name)
		require.Equal(t, writes[name], !service.ReadOnly, name)
		require.False(t, service.Privileged, name)
		require.Empty(t, service.NetworkMode+service.PID, name)
		for _, volume := range service.Volumes {
			host, _, _ := strings.Cut(volume, ":")
			switch {
			case strings.HasPrefix(host, "./"):
				require.True(t, strings.HasSuffix(volume, ":ro"), "%s may write to %s", name, volume)
			case strings.HasPrefix(host, "/"):
				require.Equal(t, "notebox /var/run/docker.sock", name+" "+host)
			}
		}
	}
}

// TestComposeProfiles: docs/operate.md has a row for each profile, and what a file of deploy/compose
// sets is something that compose.yaml reads.
func TestComposeProfiles(t *testing.T) {
	t.Parallel()
	var compose composeFile
	readYAML(t, "../../../compose.yaml", &compose)
	source, err := os.ReadFile("../../../compose.yaml")
	require.NoError(t, err)
	operate, err := os.ReadFile("../../../docs/operate.md")
	require.NoError(t, err)
	var profiles []string
	for name, service := range compose.Services {
		profiles = append(profiles, service.Profiles...)
		for _, port := range service.Ports {
			if name != "caddy" {
				require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s is published to others: %s", name, port)
			}
		}
	}
	require.NotEmpty(t, profiles)
	for _, profile := range profiles {
		require.Contains(t, string(operate), "\n| `"+profile+"` |")
	}
	files, err := filepath.Glob("../../../deploy/compose/*.env")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		require.Contains(t, profiles, strings.TrimSuffix(filepath.Base(file), ".env"))
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		names := regexp.MustCompile(`(?m)^([A-Z_0-9]+)=`).FindAllStringSubmatch(string(raw), -1)
		require.NotEmpty(t, names, file)
		for _, name := range names {
			read := regexp.MustCompile(`\$\{` + name[1] + `\b|- ` + name[1] + `\n`)
			require.Regexp(t, read, string(source), "%s sets %s", file, name[1])
		}
	}
}
