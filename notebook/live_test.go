package notebook_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

// show does what Output.Replaced asks of whoever shows a stream.
func show(shown string, out notebook.Output) string {
	for range out.Replaced - 1 {
		shown = shown[:strings.LastIndexByte(shown, '\n')]
	}
	if out.Replaced > 0 {
		shown = shown[:strings.LastIndexByte(shown, '\n')+1]
	}
	return shown + out.Text
}

func TestLiveStreams(t *testing.T) {
	type piece struct {
		text     string
		replaced int
	}
	for _, test := range []struct {
		desc   string
		pieces []string
		want   []piece // "-" is no output
	}{
		{"lines", []string{"a\n", "b", "c\n"}, []piece{{"a\n", 0}, {"b", 0}, {"c\n", 0}}},
		{"a progress bar", []string{"\r 10%", "\r 20%", "\r100%\n", "done\n"}, []piece{{" 10%", 0}, {" 20%", 1}, {"100%\n", 1}, {"done\n", 0}}},
		{"with the return behind", []string{"a\n1/3\r", "2/3\r", "3/3\n"}, []piece{{"a\n1/3", 0}, {"2/3", 1}, {"3/3\n", 1}}},
		{"that is blanked", []string{"100%", "\r    \r", "x"}, []piece{{"100%", 0}, {"", 1}, {"x", 0}}},
		{"\\r\\n in two pieces", []string{"a\r", "\nb"}, []piece{{"a", 0}, {"\nb", 0}}},
		{"nested bars", []string{"a\n1\n2", "\x1b[A\r3", "\n4"}, []piece{{"a\n1\n2", 0}, {"3\n2", 2}, {"4", 1}}},
		{"backspaces", []string{"abc", "\b\bX"}, []piece{{"abc", 0}, {"aXc", 1}}},
		{"colours, split anywhere", []string{"\x1b", "[3", "1mred", "\x1b[0m", "\u009b3", "1m!"}, []piece{{"-", 0}, {"-", 0}, {"red", 0}, {"-", 0}, {"-", 0}, {"!", 0}}},
		{"a title, split", []string{"\x1b]0;ti", "tle\a", "x\x1b(", "By"}, []piece{{"-", 0}, {"-", 0}, {"x", 0}, {"y", 0}}},
		{"runes that share bytes", []string{"ü", "\rö", "\rö"}, []piece{{"ü", 0}, {"ö", 1}, {"-", 0}}},
	} {
		t.Run(test.desc, func(t *testing.T) {
			d := notebook.NewDecoder(notebook.Limits{})
			for i, text := range test.pieces {
				out, ok := d.Output(0, []byte(stream("stdout", text)))
				require.Equal(t, test.want[i].text != "-", ok, "piece %d: %q", i, out.Text)
				if ok {
					require.Equal(t, test.want[i], piece{out.Text, out.Replaced}, "piece %d", i)
				}
			}
		})
	}
}

// Whoever follows the pieces sees in the end what Plain makes of the whole.
func TestLiveStreamsEndAsPlain(t *testing.T) {
	alphabet := []string{"a", "ü", " ", "b\n", "\n", "\r", "\r\n", "\b", "\t", "\x00", "\x1b[A", "\x1b[2A", "\x1b[K", "\x1b[2K", "\x1b[J",
		"\x1b[31m", "\x1b[3G", "\u009b2D", "\x1b]0;t\a", "100%", "\x1b7"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		var whole strings.Builder
		for range 1 + random.IntN(30) {
			whole.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		d, shown := notebook.NewDecoder(notebook.Limits{}), ""
		var pieces []string
		for rest := []rune(whole.String()); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			pieces = append(pieces, string(rest[:n]))
			rest = rest[n:]
			if out, ok := d.Output(0, []byte(stream("stdout", pieces[len(pieces)-1]))); ok {
				shown = show(shown, out)
			}
		}
		require.Equal(t, notebook.Plain(whole.String()), shown, "%q", pieces)
	}
}

func TestLiveStreamsBegin(t *testing.T) {
	for _, test := range []struct {
		desc  string
		after func(*notebook.Decoder)
		want  int // lines that "\rb" replaces after "a"
	}{
		{"nothing", func(*notebook.Decoder) {}, 1},
		{"another stream", func(d *notebook.Decoder) { d.Output(0, []byte(stream("stderr", "x"))) }, 0},
		{"another cell", func(d *notebook.Decoder) { d.Output(1, []byte(stream("stdout", "x"))) }, 0},
		{"a display", func(d *notebook.Decoder) { d.Output(0, []byte(display("text/plain", `"x"`))) }, 0},
		{"a display of nothing", func(d *notebook.Decoder) { d.Output(0, []byte(`{"output_type":"display_data","data":{}}`)) }, 1},
		{"an update", func(d *notebook.Decoder) { d.Update(0, []byte(displayOf("i", "x"))) }, 1},
		{"a clear", func(d *notebook.Decoder) { d.Clear(0) }, 0},
		{"a clear of another cell", func(d *notebook.Decoder) { d.Clear(1) }, 1},
		{"nonsense", func(d *notebook.Decoder) { d.Output(0, []byte(`[`)) }, 1},
	} {
		t.Run(test.desc, func(t *testing.T) {
			d := notebook.NewDecoder(notebook.Limits{})
			d.Output(0, []byte(stream("stdout", "a")))
			test.after(d)
			out, ok := d.Output(0, []byte(stream("stdout", "\rb")))
			require.True(t, ok)
			require.Equal(t, "b", out.Text)
			require.Equal(t, test.want, out.Replaced)
		})
	}
}

// What is longer than a screen is only added to: a run that rewrites forever
// costs no more with each piece.
func TestLiveStreamsForget(t *testing.T) {
	d := notebook.NewDecoder(notebook.Limits{})
	shown := ""
	add := func(text string) notebook.Output {
		out, _ := d.Output(0, []byte(stream("stdout", text)))
		shown = show(shown, out)
		return out
	}
	long := strings.Repeat("ü", 5000)
	add("first\n" + long)
	require.Equal(t, "abc", add("abc").Text)
	require.Zero(t, add("\rü\r").Replaced)
	require.True(t, strings.HasPrefix(shown, "first\n"+long+"abc"))
	add("\nnext")
	require.Equal(t, 1, add("\rNEXT").Replaced)
	require.True(t, strings.HasSuffix(shown, "\nNEXT"), "%.100s", shown)
	for range 300 {
		add("line\n")
	}
	require.LessOrEqual(t, add("\x1b[500Ax").Replaced, 51)
}

func displayOf(id, text string) string {
	return fmt.Sprintf(`{"output_type":"display_data","metadata":{},"data":{"text/plain":%s},"transient":{"display_id":%s}}`, quoted(text), quoted(id))
}

func TestDecoderTellsDisplayIDs(t *testing.T) {
	for _, test := range []struct {
		desc, raw string
		id        string
		update    bool // is one
	}{
		{"an id", displayOf("a", "x"), "a", true},
		{"none", display("text/plain", `"x"`), "", false},
		{"transient is null", `{"output_type":"display_data","data":{"text/plain":"x"},"transient":null}`, "", false},
		{"no string", `{"output_type":"display_data","data":{"text/plain":"x"},"transient":{"display_id":7}}`, "", false},
		{"too long", displayOf(strings.Repeat("x", 257), "x"), "", false},
		{"a result", `{"output_type":"execute_result","data":{"text/plain":"x"},"transient":{"display_id":"r"}}`, "r", true},
		{"a stream has none", `{"output_type":"stream","name":"stdout","text":"x","transient":{"display_id":"r"}}`, "", false},
	} {
		t.Run(test.desc, func(t *testing.T) {
			d := notebook.NewDecoder(notebook.Limits{})
			out, ok := d.Output(0, []byte(test.raw))
			require.True(t, ok)
			require.Equal(t, test.id, out.DisplayID)
			out, ok = d.Update(2, []byte(test.raw))
			require.Equal(t, test.update, ok)
			if ok {
				require.Equal(t, test.id, out.DisplayID)
				require.Equal(t, 2, out.Cell)
			}
			require.Empty(t, decode(t, executed(test.raw)).Outputs[0].DisplayID, "a notebook has no such field")
		})
	}
}

func TestDecodeMayBeCalledAgain(t *testing.T) {
	image := display("image/png", base64JSON(pngOf(1, 1)))
	d := notebook.NewDecoder(notebook.Limits{})
	d.Output(0, []byte(image))
	_, err := d.Decode([]byte(`{"nbformat":4,"cells":[{"cell_type":"code","outputs":[` + image + `]},`))
	require.Error(t, err)
	for range 2 {
		result, err := d.Decode(executed(image))
		require.NoError(t, err)
		require.Equal(t, []string{"image_0.png"}, names(t, result))
	}
}
