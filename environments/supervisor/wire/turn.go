package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
)

// NewToken returns a token of TokenSize: text, so that no byte of it is the end of a message.
func NewToken() []byte {
	var random [TokenSize / 2]byte
	_, _ = rand.Read(random[:])
	return []byte(hex.EncodeToString(random[:]))
}

// ErrTurned is that another service has come.
var ErrTurned = errors.New("wire: another service has come")

// Intake reads what services say, one after the other.
type Intake struct {
	r       io.Reader
	token   []byte // nil: none is looked for
	data    []byte // read, not given out
	clear   int    // so many of them are of no token
	scratch [maxData]byte
	nonce   []byte // of the service that has come
}

// NewIntake returns an intake from r.
func NewIntake(r io.Reader) *Intake { return &Intake{r: r} }

// Look has the intake look for a token from now on. It is for the goroutine that reads.
func (i *Intake) Look(token []byte) { i.token, i.clear = token, 0 }

// Turned returns the nonce of the service that has come. What is read from now on is its.
func (i *Intake) Turned() []byte {
	nonce := i.nonce
	i.nonce = nil
	return nonce
}

// Read implements io.Reader. It is ErrTurned after the last byte of an earlier service.
func (i *Intake) Read(p []byte) (int, error) {
	for {
		if i.nonce != nil {
			return 0, ErrTurned
		}
		if i.clear == 0 {
			if i.search(); i.nonce != nil {
				continue
			}
		}
		if i.clear > 0 {
			n := copy(p, i.data[:i.clear])
			i.data, i.clear = i.data[n:], i.clear-n
			return n, nil
		}
		n, err := i.r.Read(i.scratch[:])
		i.data = append(i.data, i.scratch[:n]...)
		if n == 0 && err != nil {
			return 0, err
		}
	}
}

// search finds the token in what is there, and takes the nonce after it.
func (i *Intake) search() {
	i.clear = len(i.data)
	if len(i.token) == 0 {
		return
	}
	at := bytes.Index(i.data, i.token)
	if at < 0 {
		i.clear -= begun(i.data, i.token)
		return
	}
	i.clear = at
	if after := i.data[at+len(i.token):]; len(after) >= TokenSize {
		i.nonce = bytes.Clone(after[:TokenSize])
		// What came before is lost, in the middle of whatever it was.
		i.data, i.clear = bytes.Clone(after[TokenSize:]), 0
	}
}

// begun returns how many bytes at the end of data are the beginning of token.
func begun(data, token []byte) int {
	for n := min(len(data), len(token)-1); n > 0; n-- {
		if bytes.HasSuffix(data, token[:n]) {
			return n
		}
	}
	return 0
}

// Turn comes to a worker of an earlier service: it writes the token and a nonce, and returns
// when all before the worker's answer was read.
func Turn(rw io.ReadWriter, token, nonce []byte) error {
	if _, err := rw.Write(append(bytes.Clone(token), nonce...)); err != nil {
		return err
	}
	var last []byte
	one := make([]byte, 1)
	for !bytes.Equal(last, nonce) {
		if _, err := io.ReadFull(rw, one); err != nil {
			return err
		}
		if last = append(last, one[0]); len(last) > len(nonce) {
			last = last[1:]
		}
	}
	return nil
}
