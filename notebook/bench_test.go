package notebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func BenchmarkDecode(b *testing.B) {
	noise := make([]byte, 6<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	for _, bench := range []struct {
		desc string
		raw  []byte
	}{
		{"plots and tables", sample(b, "rich")},
		{"8 MiB of text", executed(stream("stdout", strings.Repeat("a line of ordinary output\n", 8<<20/26)))},
		{"8 MiB of progress bars", executed(stream("stderr", strings.Repeat("\r 50%|█████     | 5/10", 8<<20/29)))},
		{"8 MiB of control characters", executed(stream("stdout", strings.Repeat("\b", 8<<20)))},
		{"8 MiB of image", executed(display("image/png", base64JSON(append(pngOf(8, 8), noise...))))},
		{"10,000 outputs", executed(display("text/plain", `"x"`) + strings.Repeat(","+display("text/plain", `"x"`), 9_999))},
	} {
		b.Run(bench.desc, func(b *testing.B) {
			b.SetBytes(int64(len(bench.raw)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := notebook.Decode(bench.raw, notebook.Limits{})
				require.NoError(b, err)
			}
		})
	}
}
