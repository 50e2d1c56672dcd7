package languages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tasks that interpreter-tools shows for its own interpreters, written anew: what
// somebody who comes from there tries first.

// nodeServer is a project of Node.js with Express: it serves, and waits.
var nodeServer = map[string]string{
	"shop/package.json": `{"name": "shop", "type": "module", "main": "server.js"}`,
	"shop/prices.js":    "export const prices = { apple: 3, pear: 4 };\n",
	"shop/server.js": `import express from "express";
import { prices } from "./prices.js";

const app = express();
app.get("/price/:fruit", (request, response) => {
  const price = prices[request.params.fruit];
  response.status(price ? 200 : 404).json({ fruit: request.params.fruit, price });
});
const server = app.listen(3000, "127.0.0.1", () => console.log("listening"));
export default server;
`,
	"shop/ask.js": `import server from "./server.js";

if (!server.listening) await new Promise((done) => server.once("listening", done));
const answer = await fetch("http://127.0.0.1:3000/price/pear");
console.log(answer.status, JSON.stringify(await answer.json()));
server.close();
`,
}

func filesOf(contents map[string]string) (files []map[string]any) {
	for name, content := range contents {
		files = append(files, map[string]any{"name": name, "content": []byte(content)})
	}
	return files
}

func TestInterpreterTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc    string
		request map[string]any
		stdout  string
	}{
		{"an average, in JavaScript", map[string]any{
			"language": "javascript",
			"code":     "const numbers = [2, 4, 4, 5, 10];\nconst sum = numbers.reduce((a, b) => a + b, 0);\nconsole.log(`average: ${sum / numbers.length}`);",
		}, "average: 5\n"},
		{"Fibonacci with a dependency, in Python", map[string]any{
			"language": "python", "dependencies": []string{"humanize>=4"}, "timeout": 60,
			"code": "import humanize\n\ndef fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n\nprint(humanize.intcomma(fibonacci(50)))",
		}, "12,586,269,025\n"},
		{"JSON that is built and asked by jq, in a shell", map[string]any{
			"language": "bash",
			"code": `people=$(jq -n --arg name Ada --argjson born 1815 '[{$name, $born}]')
people=$(jq --arg name Alan --argjson born 1912 '. + [{$name, $born}]' <<<"$people")
echo "$people" > people.json
jq -r '.[] | select(.born > 1900) | "\(.name) was born in \(.born)"' people.json`,
		}, "Alan was born in 1912\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			r := shared.Execute(t, c.request)
			require.Equal(t, "ok", r.Status, r.Text)
			require.Equal(t, c.stdout, r.Outputs[len(r.Outputs)-1].Text)
		})
	}
}

// TestInterpreterToolsServer has a server of Node.js live on in a session, and answer to
// curl from the same session.
func TestInterpreterToolsServer(t *testing.T) {
	t.Parallel()
	session := sessionIn(t, "javascript", map[string]any{"dependencies": []string{"express@5"}, "files": filesOf(nodeServer)})
	shell := func(line string) string {
		r := shared.Execute(t, map[string]any{"session": session, "language": "bash", "code": line, "timeout": 60})
		require.Equal(t, "ok", r.Status, r.Text)
		return r.Text
	}
	require.Equal(t, "listening\n200 {\"fruit\":\"pear\",\"price\":4}\n", shell("cd shop && node ask.js"))
	require.Regexp(t, `^v\d+\.`, shell("node --version"))
	require.Regexp(t, `^\d+\.`, shell("npm --version"))
	shell("cd shop && (node server.js >/tmp/server.log 2>&1 &)")
	require.Equal(t, "{\"fruit\":\"apple\",\"price\":3}\n", shell("curl -s --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:3000/price/apple && echo"))
	r := shared.Execute(t, map[string]any{"session": session, "code": `const answer = await fetch("http://127.0.0.1:3000/price/pear"); (await answer.json()).price`})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Equal(t, "4", strings.TrimSpace(r.Text))
	require.Equal(t, "404", strings.TrimSpace(shell("curl -sS -o /dev/null -w '%{http_code}' http://127.0.0.1:3000/price/plum")))
}

// TestNodeProject runs a project of several files by its entrypoint, in the kernel.
func TestNodeProject(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{
		"language": "javascript", "dependencies": []string{"express@5"}, "timeout": 60,
		"files": filesOf(nodeServer), "entrypoint": "shop/ask.js",
	})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Equal(t, "listening\n200 {\"fruit\":\"pear\",\"price\":4}\n", r.Text)
}

// TestEntrypointTwice: a program runs as often as it is named, and as it is by then. Its
// name is that of a file, whatever it has in it.
func TestEntrypointTwice(t *testing.T) {
	t.Parallel()
	id := sessionIn(t, "javascript", map[string]any{})
	for _, name := range []string{"a b#c?%41'x.js", "c.cjs", "m.mts"} {
		for _, says := range []string{"one", "one", "two"} {
			r := shared.Execute(t, map[string]any{
				"session": id, "entrypoint": name, "files": filesOf(map[string]string{name: "console.log('" + says + "')"}),
			})
			require.Equal(t, "ok", r.Status, r.Text)
			require.Equal(t, says+"\n", r.Text, name)
		}
	}
}
