package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How a name is written in a key:
//
//   - ASCII letters and digits, "-", "_", ".", "(", ")", space and printable characters
//     beyond ASCII stand for themselves. So "out.csv", "a b.png" and "数据.csv" do.
//   - Every other byte is "=" and two upper-case hex digits: "100%.csv" is "100=25.csv".
//     So is a dot at the end of a component (Azure drops it; "." and ".." have one), a
//     space at either end, the dot of a last ".attrs" or ".tmp" (fileblob's own), and the
//     first "_" of "__0x" (gocloud's escape): what a driver would change, links would not.
//   - A folder ends in "=": "plots/a.png" is "plots=/a.png". So the file "a" and the file
//     "a/b" can stand beside each other in a store whose folders are real.
//   - A component that is too long goes on in the next, and ends in "=-" where it breaks.
//     An empty one ("a//b") is "=_".
//   - Of a path that is too long or too deep, the folders become one hash of the whole
//     path: "=h3fd9…=/a.png".
//
// "=" is the escape, and not "%", which the servers and proxies on a link's way may
// decode once more.

const (
	// maxComponentBytes leaves room in a file system's 255 bytes for the ".<16 hex>.tmp"
	// that fileblob appends while it writes.
	maxComponentBytes = 224

	// maxNameBytes is what an escaped name may have of maxKeyBytes, beside
	// "runs/2006-01-02/", maxRunIDBytes and "/images/".
	maxNameBytes = 900

	// maxNameComponents is far below the 254 path segments that Azure allows.
	maxNameComponents = 100

	// driverEscape begins what gocloud's drivers write for a character.
	driverEscape = "__0x"

	folderMark  = "="
	breakMark   = "=-"
	emptyMark   = "=_"
	digestMark  = "=h"
	digestBytes = 16 // no two names with one hash can be found in fewer than 2^64 tries
)

// escapeName writes a name, a path with "/", as components of a key.
func escapeName(name string) string {
	var components []string
	parts := strings.Split(name, "/")
	for i, part := range parts {
		escaped := escapeComponent(part)
		if i < len(parts)-1 {
			escaped[len(escaped)-1] += folderMark
		}
		components = append(components, escaped...)
	}
	key := strings.Join(components, "/")
	if len(key) <= maxNameBytes && len(components) <= maxNameComponents {
		return key
	}
	hash := digest(name)
	last := strings.Join(escapeComponent(parts[len(parts)-1]), "/")
	if len(hash)+len(folderMark)+len("/")+len(last) > maxNameBytes {
		return hash // more than the 255 bytes that a file's name can have
	}
	return hash + folderMark + "/" + last
}

// escapeComponent writes one component, broken if it is too long. There is room for
// a folderMark after the last piece.
func escapeComponent(component string) []string {
	if component == "" {
		return []string{emptyMark}
	}
	var pieces []string
	var piece strings.Builder
	reserved := reservedEnding(component)
	for i := 0; i < len(component); {
		r, size := utf8.DecodeRuneInString(component[i:])
		edge := r == ' ' && (i == 0 || i == len(component)-1) || r == '.' && i == len(component)-1
		unit := component[i : i+size]
		if edge || i == reserved || strings.HasPrefix(component[i:], driverEscape) || !plain(r, size) {
			unit = "=" + strings.ToUpper(hex.EncodeToString([]byte{component[i]}))
			size = 1
		}
		if piece.Len()+len(unit)+len(breakMark) > maxComponentBytes {
			pieces = append(pieces, piece.String()+breakMark)
			piece.Reset()
		}
		piece.WriteString(unit)
		i += size
	}
	return append(pieces, piece.String())
}

// shortComponent writes one component in at most so many bytes.
func shortComponent(component string, most int) string {
	if escaped := strings.Join(escapeComponent(component), ""); len(escaped) <= most {
		return escaped
	}
	return digest(component)
}

// plain reports whether a character, size bytes long, stands for itself.
func plain(r rune, size int) bool {
	if r < utf8.RuneSelf {
		return isAlphanumeric(byte(r)) || strings.ContainsRune("-_.() ", r)
	}
	return unicode.IsPrint(r) && (r != utf8.RuneError || size > 1)
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// reservedEnding is where a component's ending that fileblob uses itself begins, or -1:
// ".attrs" is a file that it reads beside an object, ".tmp" one that it is writing.
// Upper case too, for file systems to which that is the same.
func reservedEnding(component string) int {
	for _, ending := range []string{".attrs", ".tmp"} {
		start := len(component) - len(ending)
		if start >= 0 && strings.EqualFold(component[start:], ending) {
			return start
		}
	}
	return -1
}

// digest stands for a name that is too long for a key.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return digestMark + hex.EncodeToString(sum[:digestBytes])
}

// unescapeName is the inverse of escapeName. If the folders are a hash, it is the
// rest; ok is false for what escapeName does not make.
func unescapeName(key string) (name string, ok bool) {
	var parts []string
	unbroken := ""
	components := strings.Split(key, "/")
	for i, component := range components {
		if start, broken := strings.CutSuffix(component, breakMark); broken && i < len(components)-1 {
			unbroken += start
			continue
		}
		component = unbroken + component
		unbroken = ""
		if i < len(components)-1 {
			if component, ok = strings.CutSuffix(component, folderMark); !ok {
				return "", false
			}
			if i == 0 && strings.HasPrefix(component, digestMark) {
				continue
			}
		}
		part, ok := unescapeComponent(component)
		if !ok {
			return "", false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/"), true
}

func unescapeComponent(escaped string) (string, bool) {
	if escaped == emptyMark {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '=' {
			b.WriteByte(escaped[i])
			continue
		}
		if i+2 >= len(escaped) {
			return "", false
		}
		c, err := hex.DecodeString(escaped[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(c[0])
		i += 2
	}
	return b.String(), true
}
