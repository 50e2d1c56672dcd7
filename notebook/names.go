package notebook

import (
	"fmt"
	"maps"
)

// names gives blobs their names.
type names struct {
	next  map[string]int       // by prefix
	given map[content][]string // while streaming, in order
}

// content identifies the bytes of a blob.
type content struct {
	mediaType string
	sha256    [32]byte
}

// give returns a new name and remembers it.
func (n *names) give(c content, kind blobKind) string {
	name := n.fresh(kind)
	if n.given == nil {
		n.given = map[content][]string{}
	}
	n.given[c] = append(n.given[c], name)
	return name
}

// claim returns the first name that was given to c and not claimed, or a new one.
func (n *names) claim(c content, kind blobKind) string {
	given := n.given[c]
	if len(given) == 0 {
		return n.fresh(kind)
	}
	n.given[c] = given[1:]
	return given[0]
}

// clone returns a copy to claim from.
func (n *names) clone() *names {
	return &names{next: maps.Clone(n.next), given: maps.Clone(n.given)}
}

// fresh returns the kind's next name: image_0.png, image_1.jpg, output_0.pdf.
func (n *names) fresh(kind blobKind) string {
	if n.next == nil {
		n.next = map[string]int{}
	}
	number := n.next[kind.prefix]
	n.next[kind.prefix]++
	return fmt.Sprintf("%s_%d%s", kind.prefix, number, kind.ext)
}
