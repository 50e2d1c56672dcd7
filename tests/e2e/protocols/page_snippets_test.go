package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/tests/browser"
	"notebox/tests/e2e/service"
)

// hostile has what shells, strings of Python, Go and JavaScript, and forms may trip over.
const hostile = "def f():\n    return '''four\n    spaces'''\n" +
	"print(f(), \"quotes ' \\\" `tick` ''' \\\"\\\"\\\"\", r'\\n \\u0041 \\ ')\n" +
	"print('$HOME ${PATH} $(id) %s %d !! & ; | < > # \\\\', 'JSON', 'EOF')\n" +
	"EOF = JSON = 1\n" +
	"EOF\nJSON\n" +
	"print('tab\there', 'é 漢 \U0001F600 \u2028 \ufeff \u0085', '</script>')\n" +
	"print(len('''a\nb'''))"

// snippetCases are what is typed into the page.
var snippetCases = []struct {
	desc     string
	code     string
	language string
	files    map[string]string
	packages string
	want     string
}{
	{desc: "one line", code: "print(6 * 7)", want: "42\n"},
	{desc: "hostile code", code: hostile},
	{desc: "a text of many lines", code: "for i in range(2):\n    print('''a\n    b''', i)\n", want: "a\n    b 0\na\n    b 1\n"},
	{
		desc:  "files with hostile names",
		code:  hostile + "\nprint(open('in.csv').read(), open(\"it's a $HOME (file) & é;type=x.txt\").read())",
		files: map[string]string{"in.csv": "a,b\r\n1,2\n", `it's a $HOME (file) & é;type=x.txt`: "`text` with $"},
	},
	{
		desc: "a shell's lines in a form", language: "bash", code: "x=$(cat in.csv)\necho \"[$x]\"\ncat <<EOF\n'$x' \\\\\nEOF\n",
		files: map[string]string{"in.csv": "text"}, want: "[text]\n'text' \\\n",
	},
	{desc: "packages", code: "import roman\nprint(roman.toRoman(42))", packages: "roman==5.*", want: "XLII\n"},
}

// TestTheSnippetsRun: each text of the dialog "Request", run as it is, has the output that the
// page shows.
func TestTheSnippetsRun(t *testing.T) {
	t.Parallel()
	for _, c := range snippetCases {
		t.Run(c.desc, func(t *testing.T) {
			folder := t.TempDir()
			b := openPage(t, c.code)
			if c.language != "" {
				browser.Eval[bool](b, `(() => { const s = document.querySelector("#language"); s.value = "`+c.language+`"; s.dispatchEvent(new Event("change")); return true; })()`)
			}
			if c.packages != "" {
				click(b, "options-button")
				b.Do(chromedp.SendKeys(chromedp.CSS("#packages"), c.packages))
			}
			paths := []string{}
			for name, content := range c.files {
				paths = append(paths, filepath.Join(folder, name))
				require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
			}
			if len(paths) > 0 {
				b.Do(chromedp.SetUploadFiles(chromedp.CSS("#file-input"), paths))
			}
			click(b, "run")
			untilEnd(b)
			b.Until(`document.querySelector(".outputs .stream") !== null`)
			shown := browser.Eval[string](b, `[...document.querySelectorAll(".outputs .stream")].map((e) => e.textContent).join("")`)
			if c.want != "" {
				require.Equal(t, c.want, shown)
			}
			require.NotEmpty(t, shown)
			for name, text := range snippetsOf(b) {
				require.Equal(t, shown, runSnippet(t, folder, name, text), "%s:\n%s", name, text)
			}
			b.RequireQuiet(shared.URL)
		})
	}
}

// TestTheSnippetsTakeTheKey: of the environment, as the page gives its own to nobody. Each runs
// in the session that the page has.
func TestTheSnippetsTakeTheKey(t *testing.T) {
	t.Parallel()
	const key = "key-of-a-person-who-copies"
	folder := t.TempDir()
	keys := filepath.Join(folder, "keys")
	require.NoError(t, os.WriteFile(keys, []byte(key+"\n"), 0o600))
	s := service.Start(t, "snippets", "--api-keys-file", keys, "--pool-size", "1")
	b := browser.New(t, 0, 0)
	b.Do(chromedp.Navigate(s.URL + "/"))
	b.Until(`document.querySelector("#api-key") !== null`)
	b.Do(chromedp.SendKeys(chromedp.CSS("#api-key"), key+"\r"))
	b.Until(`document.querySelector("#run:not(:disabled)") !== null`)
	code := filepath.Join(folder, "code.py")
	require.NoError(t, os.WriteFile(code, []byte("n = globals().get('n', 0) + 1\nprint('seen', n > 1)"), 0o600))
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#open-input"), []string{code}))
	untilStatus(b, "code.py is open.")
	b.Do(chromedp.Click(chromedp.CSS("label:has(#session-mode)")))
	click(b, "run")
	untilEnd(b)
	for name, text := range snippetsOf(b) {
		require.NotContains(t, text, key)
		require.Equal(t, "seen True\n", runSnippet(t, folder, name, text, "NOTEBOX_KEY="+key), "%s:\n%s", name, text)
	}
	b.Press("Escape")
	click(b, "session-close")
	b.Until(`document.querySelector("#session-line").hidden`)
}

// untilEnd waits for a run to end, which must be well.
func untilEnd(b *browser.Browser) {
	b.T.Helper()
	b.Until(`document.querySelector("#stop").hidden && document.querySelector("#status").textContent !== ""`)
	require.Contains(b.T, browser.Eval[string](b, `document.querySelector("#status").textContent`), "Done", "%s",
		browser.Eval[string](b, `[...document.querySelectorAll(".outputs")].map((e) => e.textContent).join("")`))
}

// snippetsOf opens the dialog and returns the text under each name.
func snippetsOf(b *browser.Browser) map[string]string {
	b.T.Helper()
	click(b, "request-button")
	all := browser.Eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll("dialog .tabs button")].map((button) => {
		button.click();
		return [button.textContent, document.querySelector("dialog pre").textContent];
	}))`)
	require.Len(b.T, all, 5)
	return all
}

// runSnippet runs a text as somebody would who has copied it into a file of its own, and returns
// what it prints: of a call as shells make it, the text of the reply.
func runSnippet(t *testing.T, folder, name, text string, env ...string) string {
	t.Helper()
	ways := map[string]struct{ file, command string }{
		"curl":      {"request.sh", "sh request.sh"},
		"Tool call": {"call.sh", "sh call.sh"},
		"Python":    {"request.py", filepath.Join(clientsFolder(t, "python"), "bin/python") + " request.py"},
		"Go":        {"request.go", "go run request.go"},
		"TypeScript": {"request.ts", "node node_modules/typescript/bin/tsc --strict --skipLibCheck --target es2022 --module preserve --types node --outDir out request.ts" +
			" && mv out/request.js out/request.mjs && node out/request.mjs"},
	}
	way, ok := ways[name]
	require.True(t, ok, "nobody knows how to run %s", name)
	require.NoError(t, os.WriteFile(filepath.Join(folder, way.file), []byte(text), 0o600))
	if name == "TypeScript" {
		if err := os.Symlink(clientsFolder(t, "node")+"/node_modules", filepath.Join(folder, "node_modules")); err != nil {
			require.ErrorIs(t, err, os.ErrExist)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euc", way.command)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), append(env, "GOFLAGS=", "GO111MODULE=off")...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s%s\n%s", name, complaints.String(), out, text)
	if !strings.HasSuffix(way.file, ".sh") {
		return string(out)
	}
	var reply struct {
		Text   string
		Result struct{ Text string }
	}
	require.NoError(t, json.Unmarshal(out, &reply), "%s", out)
	if name == "Tool call" {
		return reply.Result.Text
	}
	return reply.Text
}
