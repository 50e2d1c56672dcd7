package adversarial

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// good is what a caller asks who means no harm: requests with random content, and
// all that is to be said of the answers.
type good struct {
	kind     string
	requests []Request
	wrong    func(answers []*Answer) string // besides what the requests expect; "" for nothing
}

// goodFileSize is that of a file that goes in and comes out, bytes: large enough for
// several reads of a socket.
const goodFileSize = 100_000

// goodKinds are asked in a random order.
var goodKinds = []func(r *rand.Rand) good{printsNumber, turnsFile, describes, raisesAtLine}

func printsNumber(r *rand.Rand) good {
	n := r.Uint64()
	return good{kind: "print", requests: []Request{{
		Code:   fmt.Sprintf("print(%d)", n),
		Expect: Expect{Run: list[string]{"ok"}, Text: is("%d\n", n), Error: is("")},
	}}}
}

func turnsFile(r *rand.Rand) good {
	data := make([]byte, goodFileSize)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	in := sha256.Sum256(data)
	content := base64.StdEncoding.EncodeToString(data)
	slices.Reverse(data)
	out := sha256.Sum256(data)
	size := int64(len(data))
	execute := Request{
		Code: `import hashlib
data = open('/mnt/data/in.bin', 'rb').read()
_ = open('/mnt/data/out.bin', 'wb').write(data[::-1])
print(hashlib.sha256(data).hexdigest())`,
		Fields: map[string]any{"files": []map[string]string{{"name": "in.bin", "content": content}}},
		Expect: Expect{
			Run:     list[string]{"ok"},
			Text:    &Match{Matches: list[string]{"^" + hex.EncodeToString(in[:]) + "\n"}},
			Files:   &[]File{{Path: "/mnt/data/out.bin", Bytes: &size}},
			Skipped: &[]Skipped{},
		},
	}
	return good{
		kind:     "files",
		requests: []Request{execute, {Method: "GET", Path: "{file:out.bin}"}},
		wrong: func(answers []*Answer) string {
			if have := sha256.Sum256(answers[1].Body); have != out {
				return fmt.Sprintf("the file is %x, not %x", have, out)
			}
			return ""
		},
	}
}

func describes(r *rand.Rand) good {
	n := r.IntN(1000)
	want := fmt.Sprintf("[3.0, %d.0, 1.0, %d.0, %d.5, %d.0, %d.5, %d.0]\n", n+1, n, n, n+1, n+1, n+2)
	return good{kind: "pandas", requests: []Request{{
		Code:   fmt.Sprintf("import pandas as pd\nprint(pd.Series([%d, %d, %d]).describe().tolist())", n, n+1, n+2),
		Expect: Expect{Run: list[string]{"ok"}, Text: is("%s", want), Error: is("")},
	}}}
}

func raisesAtLine(r *rand.Rand) good {
	before, n := r.IntN(50), r.Uint64()
	return good{
		kind: "error",
		requests: []Request{{
			Code:   strings.Repeat("x = 1\n", before) + fmt.Sprintf("raise ValueError('%d')", n),
			Expect: Expect{Run: list[string]{"error"}, Error: is("ValueError"), Message: is("%d", n)},
		}},
		wrong: func(answers []*Answer) string {
			if have := answers[0].Reply.Error.Line; have != before+1 {
				return fmt.Sprintf("the error is in line %d, not %d", have, before+1)
			}
			return ""
		},
	}
}

func is(format string, args ...any) *Match {
	text := fmt.Sprintf(format, args...)
	return &Match{Equals: &text}
}
