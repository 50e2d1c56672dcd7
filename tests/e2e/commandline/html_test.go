package commandline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/tests/browser"
)

// TestHTML: --html writes one file, which shows code and outputs in a browser without a service,
// and asks nobody for anything.
func TestHTML(t *testing.T) {
	inPlaces(t, func(t *testing.T, env []string) {
		dir := write(t, map[string]string{"report.py": `# A report
import matplotlib.pyplot as plt
from IPython.display import HTML, display
print("</script><script>window.pwned=1</script>")
plt.plot([1, 3, 2]); plt.show()
display(HTML("<p>framed</p><script>try { parent.pwned = 1 } catch {} document.body.append('ran')</script>"))
open("out.csv", "w").write("a\n")
1/0
`})
		got := call{args: []string{"run", "--html", "report.html", "report.py"}, dir: dir, env: env}.run(t)
		require.Equal(t, 1, got.exit, got.said)
		file := filepath.Join(dir, "report.html")
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "/v1/files/", "a link that ends with the program, or shows where it was")
		require.NotContains(t, string(raw), `id="script-plotly.js"`, "a large script that nothing needs")

		b := browser.New(t, 1000, 2000)
		b.Do(chromedp.Navigate("file://" + file))
		b.Until(`document.querySelector(".outputs img")?.naturalWidth > 300 && document.querySelector("iframe")?.height > 40`)
		require.Equal(t, "report.py", browser.Eval[string](b, `document.title`))
		require.Equal(t, "1/0\n", browser.Eval[string](b, `document.querySelector(".source-line.failing").textContent`))
		require.True(t, strings.HasPrefix(browser.Eval[string](b, `document.querySelector(".source-code").textContent`), "# A report\n"), "the program, and not the cell that ran it")
		require.Contains(t, browser.Eval[string](b, `document.querySelector(".stream").textContent`), "</script>")
		require.Contains(t, browser.Eval[string](b, `document.querySelector(".error").textContent`), "division by zero")
		require.Contains(t, browser.Eval[string](b, `document.body.textContent`), "out.csv 2 B")
		require.Equal(t, "null", browser.Eval[string](b, `String(window.pwned ?? null)`))
		require.Equal(t, "allow-scripts", browser.Eval[string](b, `document.querySelector("iframe").getAttribute("sandbox")`))
		b.Shoot("html-" + filepath.Base(t.Name()))
		require.Empty(t, b.Complaints())
		for _, request := range b.Requests() {
			require.Regexp(t, `^(file:|data:|blob:|about:)`, request)
		}

		got = call{args: []string{"run", "--html", "none/x.html", "-c", "1"}, dir: dir, env: env}.run(t)
		require.Equal(t, 2, got.exit)
		require.Contains(t, got.said, "--html")
	})
}
