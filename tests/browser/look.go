package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Prefer has the system of the browser prefer "light" or "dark".
func (b *Browser) Prefer(scheme string) {
	b.T.Helper()
	_, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.T, err)
}

// RequireAccessible checks the page by axe-core: the rules of WCAG 2.2, levels A and AA, and
// what it counts as good practice. Frames are what code put out, and no part of the page.
func (b *Browser) RequireAccessible() {
	b.T.Helper()
	out, err := exec.Command(filepath.Join(root(b.T), "scripts/page.sh"), "--packages").Output()
	require.NoError(b.T, err, stderrOf(err))
	axe, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "axe-core/axe.min.js"))
	require.NoError(b.T, err)
	// It is waited for through a variable, as the protocol's own wait ends at a navigation.
	Eval[bool](b, string(axe)+`;
		window.axeFound = undefined;
		axe.run(document, { iframes: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
			.then(({ violations, passes }) => { window.axeFound = { passed: passes.length, violations: violations.map(
				(v) => v.id + ": " + v.help + "\n" + v.nodes.map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("\n")) }; });
		true`)
	b.Until(`window.axeFound !== undefined`)
	require.Greater(b.T, Eval[int](b, `window.axeFound.passed`), 10)
	found := Eval[[]string](b, `window.axeFound.violations`)
	require.Empty(b.T, strings.Join(found, "\n"))
}
