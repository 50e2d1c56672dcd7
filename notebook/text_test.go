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
		{"one image in two formats", both("image/jpeg", base64JSON(jpegOf(1, 1)), "image/png", image), "[image image_0.png: https://example.org/image_0.png]\n"},
		{"of which one is broken", both("image/jpeg", base64JSON(jpegOf(1, 1)), "image/png", `"AAAA"`), "[image image_0.jpg: https://example.org/image_0.jpg]\n"},
		{"two images of two outputs", display("image/png", image) + "," + display("image/jpeg", base64JSON(jpegOf(1, 1))), "[image image_0.png: https://example.org/image_0.png]\n[image image_1.jpg: https://example.org/image_1.jpg]\n"},
		{"sound as data", both("text/plain", `"<IPython.lib.display.Audio object>"`, "text/html", `"<audio controls><source src=\"data:audio/wav;base64,UklGRg==\" type=\"audio/wav\" />Your browser does not support the audio element.</audio>"`), "[file output_0.wav: https://example.org/output_0.wav]\n"},
		{"a film as data, in lines", both("text/plain", `"<IPython.core.display.HTML object>"`, "text/html", `"<video controls><source type='video/mp4' src='data:video/mp4;base64,AAAA\nAAAA'>No.</video>"`), "[file output_0.mp4: https://example.org/output_0.mp4]\n"},
		{"sound at an address", both("text/plain", `"<IPython.lib.display.Audio object>"`, "text/html", `"<audio controls><source src=\"https://example.org/a.mp3\" type=\"audio/mpeg\" />Your browser does not support the audio element.</audio>"`), "[audio: https://example.org/a.mp3]\n"},
		{"a film in a file", both("text/plain", `"<IPython.core.display.Video object>"`, "text/html", `"<video src=\"clip.mp4\" controls>Your browser does not support the <code>video</code> element.</video>"`), "[video: clip.mp4]\n"},
		{"a film on a page", both("text/plain", `"<IPython.lib.display.YouTubeVideo object>"`, "text/html", `"<iframe width=\"400\" src=\"https://www.youtube.com/embed/a\" allowfullscreen></iframe>"`), "[page: https://www.youtube.com/embed/a]\n"},
		{"data that is none", both("text/plain", `"<IPython.lib.display.Audio object>"`, "text/html", `"<audio src=\"data:audio/wav;base64,!!\"></audio>"`), "<IPython.lib.display.Audio object>\n"},
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
