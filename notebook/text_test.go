package notebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func TestText(t *testing.T) {
	image := base64JSON(pngOf(1, 1))
	for _, test := range []struct {
		desc, outputs, want string
	}{
		{"nothing", "", ""},
		{"each output ends with one newline", stream("stdout", "a") + "," + stream("stderr", "b\n\n") + "," + stream("stdout", "\n"), "a\nb\n\n"},
		{"a plot is a line", both("text/plain", `"<Figure size 640x480 with 1 Axes>"`, "image/png", image), "[image image_0.png: https://example.org/image_0.png]\n"},
		{"text that says something stays with its image", both("text/plain", `"x**2"`, "image/png", image), "x**2\n[image image_0.png: https://example.org/image_0.png]\n"},
		{"two images of one object", both("image/png", image, "image/svg+xml", `"<svg/>"`), "[image image_0.png: https://example.org/image_0.png]\n[image image_1.svg: https://example.org/image_1.svg]\n"},
		{"a blob that is no image", display("application/pdf", base64JSON([]byte("%PDF-"))), "[file output_0.pdf: https://example.org/output_0.pdf]\n"},
		{"plain text before HTML", both("text/plain", `"   a\n0  1"`, "text/html", `"<table>"`), "   a\n0  1\n"},
		{"plain text before LaTeX", both("text/plain", `"x**2"`, "text/latex", `"$x^2$"`), "x**2\n"},
		{"Markdown that was displayed", both("text/plain", `"<IPython.core.display.Markdown object>"`, "text/markdown", `"# a"`), "# a\n"},
		{"LaTeX that was displayed", both("text/plain", `"<IPython.core.display.Latex object>"`, "text/latex", `"$x$"`), "$x$\n"},
		{"JSON that was displayed", both("text/plain", `"<IPython.core.display.JSON object>"`, "application/json", `{"a": 1}`), "{\"a\":1}\n"},
		{"HTML alone", display("text/html", `"<h1>A &lt; B</h1><p>one\n two<br/>three<b> four</b></p><ul><li>x<li>y</ul><style>p{}</style>"`), "A < B\none two\nthree four\nx\ny\n"},
		{"a table", display("text/html", `"<table>\n<tr> <th>a</th>\n<th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"`), "a\tb\n1\t2\n"},
		{"preformatted HTML", display("text/html", `"<pre>a\n  b</pre> c"`), "a\n  b\nc\n"},
		{"HTML without text", both("text/plain", `"<x.Audio object>"`, "text/html", `"<script>a</script><!-- c --><svg><text>t</text></svg>"`), "<x.Audio object>\n"},
		{"nothing that can be read", both("application/vnd.a.v1+json", `{}`, "application/javascript", `"1"`), "[output of type application/javascript, application/vnd.a.v1+json]\n"},
		{"an object's repr is better than nothing", display("text/plain", `"<object at 0x7f>"`), "<object at 0x7f>\n"},
		{"terminal escapes in Markdown", display("text/markdown", `"\u001b[31ma"`), "a\n"},
		{"an error without a traceback", `{"output_type":"error","ename":"E","evalue":"m"}`, "E: m\n"},
		{"an error without a message", `{"output_type":"error","ename":"E","evalue":""}`, "E\n"},
		{"a traceback without its final line", `{"output_type":"error","ename":"E","evalue":"m","traceback":["1: f()"]}`, "1: f()\nE: m\n"},
		{"a traceback with it", `{"output_type":"error","ename":"E","evalue":"m","traceback":["1: f()","E: m"]}`, "1: f()\nE: m\n"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			require.Equal(t, test.want, notebook.Text(decode(t, executed(test.outputs)), exampleURL))
		})
	}
}

func TestTextWithoutURLs(t *testing.T) {
	result := decode(t, executed(display("image/png", base64JSON(pngOf(1, 1)))))
	require.Equal(t, "[image image_0.png]\n", notebook.Text(result, func(*notebook.Blob) string { return "" }))
	require.Equal(t, "[image image_0.png]\n", notebook.Text(result, nil))
}

func both(type1, value1, type2, value2 string) string {
	first := strings.TrimSuffix(display(type1, value1), "}}")
	return first + "," + quoted(type2) + ":" + value2 + "}}"
}
