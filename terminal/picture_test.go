package terminal

import (
	"bytes"
	"encoding/base64"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"

	"notebox/terminal/terminaltest"

	"github.com/mattn/go-sixel"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestPicturesAgainstGoldenBytes(t *testing.T) {
	for _, c := range []struct {
		way  Pictures
		file string
	}{{PicturesKitty, "kitty"}, {PicturesITerm2, "iterm2"}, {PicturesSixel, "sixel"}} {
		t.Run(c.file, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, c.way.Write(&out, terminaltest.Dots(t, 4, 3)))
			name := "testdata/" + c.file + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(name, out.Bytes(), 0o600))
			}
			want, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

// TestPicturesCanBeReadBack: each protocol's bytes hold the image that was sent.
func TestPicturesCanBeReadBack(t *testing.T) {
	raw := terminaltest.Dots(t, 200, 150)
	want, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	same := func(encoded string) {
		data, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		got, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, want.Bounds(), got.Bounds())
		require.Equal(t, color.RGBAModel.Convert(want.At(7, 9)), color.RGBAModel.Convert(got.At(7, 9)))
	}
	var out bytes.Buffer
	require.NoError(t, PicturesKitty.Write(&out, raw))
	encoded := ""
	chunks := strings.Split(strings.TrimSuffix(out.String(), "\x1b\\\n"), "\x1b\\")
	require.Greater(t, len(chunks), 1)
	for i, chunk := range chunks {
		control, data, found := strings.Cut(strings.TrimPrefix(chunk, "\x1b_G"), ";")
		require.True(t, found)
		require.LessOrEqual(t, len(data), kittyChunk)
		require.Equal(t, i < len(chunks)-1, strings.HasSuffix(control, "m=1"))
		encoded += data
	}
	same(encoded)

	out.Reset()
	require.NoError(t, PicturesITerm2.Write(&out, raw))
	_, data, found := strings.Cut(strings.TrimSuffix(out.String(), "\a\n"), ":")
	require.True(t, found)
	same(data)

	out.Reset()
	require.NoError(t, PicturesSixel.Write(&out, raw))
	var got image.Image
	require.NoError(t, sixel.NewDecoder(&out).Decode(&got))
	require.Equal(t, 200, got.Bounds().Dx())
}

func TestPicturesThatAreNotShown(t *testing.T) {
	huge := terminaltest.Dots(t, 2, 2)
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65,536 × 65,536 by its header
	for _, c := range []struct {
		desc string
		raw  []byte
	}{{"no image", []byte("\x1b[2Jnothing")}, {"nothing", nil}, {"a bomb", huge}, {"SVG", []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")}} {
		t.Run(c.desc, func(t *testing.T) {
			var out bytes.Buffer
			require.Error(t, PicturesKitty.Write(&out, c.raw))
			require.Empty(t, out.Bytes())
		})
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		desc      string
		variables map[string]string
		answer    string
		want      Pictures
	}{
		{"kitty", map[string]string{"TERM": "xterm-kitty"}, "", PicturesKitty},
		{"ghostty", map[string]string{"TERM": "xterm-ghostty"}, "", PicturesKitty},
		{"iTerm2", map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "", PicturesITerm2},
		{"iTerm2 over ssh", map[string]string{"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "", PicturesITerm2},
		{"sixel by its attributes", map[string]string{"TERM": "xterm-256color"}, "\x1b[?62;4;22c", PicturesSixel},
		{"a class that is 4 is no attribute", map[string]string{"TERM": "xterm"}, "\x1b[?4;1c", PicturesOff},
		{"attributes without sixel", map[string]string{"TERM": "xterm"}, "\x1b[?62;22;44c", PicturesOff},
		{"no answer", map[string]string{"TERM": "xterm"}, "", PicturesOff},
		{"tmux in kitty", map[string]string{"TERM": "tmux-256color", "TMUX": "/x", "KITTY_WINDOW_ID": "1"}, "", PicturesOff},
		{"dumb", map[string]string{"TERM": "dumb"}, "\x1b[?62;4c", PicturesOff},
		{"none", nil, "\x1b[?62;4c", PicturesOff},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.want, Detect(func(name string) string { return c.variables[name] }, func() string { return c.answer }))
		})
	}
}

func TestLightGround(t *testing.T) {
	for value, want := range map[string]bool{"": false, "15;0": false, "0;15": true, "0;default;15": true, "0;7": true} {
		require.Equal(t, want, IsLight(func(string) string { return value }), value)
	}
}
