package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sync"
)

// benchCase is a piece of code, and what must come back from it.
type benchCase struct {
	name, title  string
	code         string
	language     string // "" is the default's
	dependencies []string
	text         []string // is in the text
	image        bool     // a PNG comes back
	file         *expectedFile
}

// expectedFile is one whose content is block, repeated.
type expectedFile struct {
	name   string
	bytes  int64
	sha256 string
	block  []byte
}

// The file is 50 MB of bytes that do not compress within a block, and that both
// sides can make in no time.
const (
	fileBytes  = 50_000_000
	fileBlock  = 100_000
	fileDigest = fileBlock / sha256.Size // digests in a block
)

var cases = sync.OnceValue(func() []benchCase {
	return []benchCase{
		{
			name: "print", title: "one print",
			code: "print('hello')",
			text: []string{"hello"},
		},
		{
			name: "plot", title: "pandas + plot + describe",
			code: `import numpy as np
import pandas as pd
import matplotlib.pyplot as plt

rng = np.random.default_rng(7)
df = pd.DataFrame({"day": np.arange(1000), "rides": rng.normal(100, 15, 1000).cumsum()})
df.plot(x="day", y="rides", title="rides")
plt.show()
print(df.describe())`,
			text:  []string{"rides", "count", "1000.000000", "499.500000"},
			image: true,
		},
		{
			name: "fit", title: "scikit-learn fit, 10,000 rows",
			code: `from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

x, y = make_classification(n_samples=10_000, n_features=20, random_state=7)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=7)
model = LogisticRegression().fit(x_train, y_train)
print(f"{x.shape[0]} rows, accuracy {model.score(x_test, y_test):.1f}")`,
			text: []string{"10000 rows, accuracy 0."},
		},
		{
			name: "file", title: "50 MB file written and returned",
			code: fmt.Sprintf(`import hashlib

block = b"".join(hashlib.sha256(i.to_bytes(4, "big")).digest() for i in range(%d))
with open("/mnt/data/fifty.bin", "wb") as f:
    f.write(block * %d)
print("written")`, fileDigest, fileBytes/fileBlock),
			text: []string{"written"},
			file: newExpectedFile("fifty.bin"),
		},
	}
})

func newExpectedFile(name string) *expectedFile {
	f := &expectedFile{name: name, bytes: fileBytes}
	for i := range uint32(fileDigest) {
		digest := sha256.Sum256(binary.BigEndian.AppendUint32(nil, i))
		f.block = append(f.block, digest[:]...)
	}
	hash := sha256.New()
	for range fileBytes / fileBlock {
		hash.Write(f.block)
	}
	f.sha256 = hex.EncodeToString(hash.Sum(nil))
	return f
}

// compare reads r to its end, which must be the file's. It takes a hundredth of
// the time that a hash would, as it is part of what is measured.
func (f *expectedFile) compare(r io.Reader) error {
	piece := make([]byte, len(f.block))
	for read := int64(0); ; {
		n, err := io.ReadFull(r, piece)
		if !bytes.Equal(piece[:n], f.block[:n]) {
			return fmt.Errorf("%s is not what was written, from byte %d on", f.name, read)
		}
		read += int64(n)
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			if read != f.bytes {
				return fmt.Errorf("%s has %d bytes, not %d", f.name, read, f.bytes)
			}
			return nil
		default:
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
}

func caseNames() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// casesNamed picks from all, in the order of names.
func casesNamed(all []benchCase, names []string) ([]benchCase, error) {
	var out []benchCase
	for _, name := range names {
		i := slices.IndexFunc(all, func(c benchCase) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no case %q here", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}
