package main

import (
	"net/url"
	"regexp"
	"strings"
)

var (
	// scheme begins a URL in a value, alone or in a list.
	scheme = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://`)
	// bare is what signs in before a host without a scheme.
	bare = regexp.MustCompile(`[^\s,/@]*:[^\s/@]*@`)
	// named begins a value with a name, in a URL's query or fragment.
	named = regexp.MustCompile(`[?&;#,]([^=?&;#,]*)=`)
	// secretName is a name of a value that signs in.
	secretName = regexp.MustCompile(`(?i)sig|key|token|secret|pass|pwd|auth|credential`)
)

const (
	// hidden stands for a secret.
	hidden = "xxxxx"
	// digest follows an image's name and tag, of which it is no part that signs in.
	digest = "sha256:"
)

// hideSecrets takes out of each URL what signs in, and reports whether it found any. Where one
// URL ends in a list is not known if a password has a comma: then more is hidden, and never less.
func hideSecrets(value string) (shown string, found bool) {
	secret := make([]bool, len(value))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			secret[i], found = true, true
		}
	}
	starts := append(scheme.FindAllStringIndex(value, -1), []int{len(value), len(value)})
	for _, at := range bare.FindAllStringIndex(value[:starts[0][0]], -1) {
		if !strings.HasPrefix(value[at[1]:], digest) {
			hide(at[0], at[1]-1)
		}
	}
	for i, start := range starts[:len(starts)-1] {
		rest := value[start[1]:starts[i+1][0]] // to the next URL, with what is between them
		hideInAddress(strings.TrimRight(rest, ", \t\n"), func(from, to int) { hide(start[1]+from, start[1]+to) })
	}
	var out strings.Builder
	for i := range len(value) {
		switch {
		case !secret[i]:
			out.WriteByte(value[i])
		case i == 0 || !secret[i-1]:
			out.WriteString(hidden)
		}
	}
	return out.String(), found
}

// hideInAddress hides parts of a URL without its scheme. A value that signs in ends at & alone:
// all else may be a part of it.
func hideInAddress(text string, hide func(from, to int)) {
	hide(0, strings.LastIndexByte(text, '@'))
	for from := 0; ; {
		at := named.FindStringSubmatchIndex(text[from:])
		if at == nil {
			return
		}
		plain, err := url.QueryUnescape(text[from+at[2] : from+at[3]])
		from += at[1]
		if err != nil || secretName.MatchString(plain) {
			value, _, _ := strings.Cut(text[from:], "&")
			hide(from, from+len(value))
			from += len(value)
		}
	}
}
