package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// minSchema is the dashboard schema of Grafana 11, which later ones read.
const minSchema = 39

// panel is one of a dashboard.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, RefID string }
}

func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../examples/grafana/notebox.json")
	require.NoError(t, err)
	var board struct {
		UID, Title    string
		SchemaVersion int
		Panels        []panel
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	require.NotEmpty(t, board.UID)
	require.GreaterOrEqual(t, board.SchemaVersion, minSchema)
	require.NotEmpty(t, board.Panels)

	known, shown, ids := gathered(t, newMetrics()), map[string]bool{}, map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], "two panels have id %d", p.ID)
		require.Positive(t, p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Less(t, x, 24, p.Title)
				require.Empty(t, taken[[2]int{x, y}], "%s covers another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		require.Equal(t, p.Type != "row", len(p.Targets) > 0, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			require.False(t, refs[target.RefID], "%s has two queries %s", p.Title, target.RefID)
			refs[target.RefID] = true
			requireQuery(t, known, target.Expr, shown)
		}
	}
	for name := range known {
		if strings.HasPrefix(name, "notebox_") {
			require.True(t, shown[name], "%s is in no panel", name)
		}
	}
}

// requireQuery requires that a query is one, of metrics, labels and values that
// there are; it adds the metrics' names to seen.
func requireQuery(t *testing.T, known map[string]*dto.MetricFamily, query string, seen map[string]bool) {
	t.Helper()
	query = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(query)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, query)
	found := 0
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		found++
		name, part := selector.Name, ""
		if known[name] == nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, ok := strings.CutSuffix(name, suffix); ok {
					name, part = base, suffix
				}
			}
		}
		family := known[name]
		require.NotNil(t, family, "%s: there is no metric %s", query, selector.Name)
		require.Equal(t, family.GetType() == dto.MetricType_HISTOGRAM, part != "", query)
		seen[name] = true
		for _, m := range selector.LabelMatchers {
			requireMatcher(t, family, m, query)
		}
		return nil
	})
	require.Positive(t, found, query)
}

// requireMatcher requires that a label exists, with a value that is asked for.
func requireMatcher(t *testing.T, family *dto.MetricFamily, m *labels.Matcher, query string) {
	t.Helper()
	if m.Name == model.MetricNameLabel || m.Name == "instance" { // which Prometheus adds
		return
	}
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == m.Name && m.Matches(label.GetValue()) {
				return
			}
		}
	}
	require.Fail(t, "no series has such a label", "%s in %s", m, query)
}

func TestAlerts(t *testing.T) {
	raw, err := os.ReadFile("../../examples/grafana/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	require.Len(t, file.Groups, 1)
	known, names := gathered(t, newMetrics()), map[string]bool{}
	known["up"] = targetUp() // Prometheus's own
	operate, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	for _, rule := range file.Groups[0].Rules {
		require.False(t, names[rule.Alert])
		names[rule.Alert] = true
		require.NotEmpty(t, rule.Annotations["summary"])
		requireQuery(t, known, rule.Expr, map[string]bool{})
		require.Contains(t, string(operate), "\n| `"+rule.Alert+"` |", "it says what to do")
	}
	require.NotEmpty(t, names)
	for _, row := range regexp.MustCompile("(?m)^\\| `(Notebox\\w+)` \\|").FindAllStringSubmatch(string(operate), -1) {
		require.True(t, names[row[1]], "docs/operate.md answers %s, and no rule says it", row[1])
	}
}

// targetUp is the series that Prometheus makes of each target.
func targetUp() *dto.MetricFamily {
	job := &dto.LabelPair{Name: new("job"), Value: new("notebox")}
	return &dto.MetricFamily{Name: new("up"), Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Label: []*dto.LabelPair{job}}}}
}
