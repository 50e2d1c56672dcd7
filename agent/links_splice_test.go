package agent_test

import (
	"math/rand/v2"
	"testing"
)

// splices is how many texts are tried: a second or two.
const splices = 2000

// TestSplicedTextsLeadNowhere puts texts together of what Markdown is made of.
func TestSplicedTextsLeadNowhere(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	bits := []string{"[", "]", "(", ")", "!", "<", ">", "`", "``", "```\n", "\n", "\n\n", "\\", "&", "|", "- ", "> ", "    ", "\t", "# ", "*", "_", "~~", ":", "//", "https://e.example", "www.e.example", "[1]: ", "/mnt/data/out.csv", "sandbox:", csvURL, chartURL, "image_0.png", "a", " ", "\"t\"", "<!--", "-->", "<img src=x>", "|-|-|\n", "\r\n", "é", "mailto:a@b.c", "a@b.c"}
	for range splices {
		in := ""
		for range 1 + r.IntN(14) {
			if r.IntN(4) == 0 {
				h := hostile[r.IntN(len(hostile))]
				i := r.IntN(len(h))
				in += h[i : i+r.IntN(len(h)-i)+1]
			} else {
				in += bits[r.IntN(len(bits))]
			}
		}
		requireOwn(t, issued().Clean(in))
	}
}
