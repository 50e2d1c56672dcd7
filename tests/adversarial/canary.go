package adversarial

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Canary is a set of secrets that are planted around a service, and that nothing
// that leaves it may hold, in no common form.
type Canary struct {
	mu    sync.Mutex
	forms map[string][]byte // by what they are
	found []string
}

// Secret makes a new one, and has it looked for; where says where it is planted.
func (c *Canary) Secret(where string) string {
	secret := "canary" + strings.ToLower(rand.Text())
	c.Watch(where, secret)
	return secret
}

// Watch looks for a secret that somebody else made.
func (c *Canary) Watch(where, secret string) {
	raw := []byte(secret)
	backwards := slices.Clone(raw)
	slices.Reverse(backwards)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forms == nil {
		c.forms = map[string][]byte{}
	}
	c.forms[where] = raw
	c.forms[where+", backwards"] = backwards
	c.forms[where+", in hex"] = []byte(hex.EncodeToString(raw))
	c.forms[where+", in capital hex"] = []byte(strings.ToUpper(hex.EncodeToString(raw)))
	for shift := range 3 {
		// What stands before it moves base64 by a third of a group; the groups at both
		// ends hold bits of the neighbours and are left out.
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), raw...))
		inner := text[4 : len(text)-len(text)%4-4]
		c.forms[fmt.Sprintf("%s, in base64 at %d", where, shift)] = []byte(inner)
		c.forms[fmt.Sprintf("%s, in URL base64 at %d", where, shift)] = []byte(strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
}

// Search looks for every secret in every form; what names data in the report.
func (c *Canary) Search(what string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for where, form := range c.forms {
		if bytes.Contains(data, form) {
			c.found = append(c.found, fmt.Sprintf("%s has the secret of %s", what, where))
		}
	}
}

// SearchAnswer looks through all of an answer.
func (c *Canary) SearchAnswer(a *Answer) {
	c.Search("a reply", a.Body)
	for name, values := range a.Header {
		c.Search("a reply's header "+name, []byte(strings.Join(values, "\n")))
	}
}

// SearchFiles looks through what is at path, below it, and through its names.
func (c *Canary) SearchFiles(what, path string) error {
	return filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := what + " " + strings.TrimPrefix(file, path)
		c.Search("the name of "+name, []byte(strings.TrimPrefix(file, path)))
		if entry.IsDir() {
			return nil
		}
		data, err := os.ReadFile(file)
		c.Search(name, data)
		return err
	})
}

// Found says where a secret was, each place once.
func (c *Canary) Found() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(c.found)))
}
