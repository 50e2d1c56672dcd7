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
	// secretName is a name in a URL's query whose value signs in.
	secretName = regexp.MustCompile(`(?i)sig|key|token|secret|pass|pwd|auth|credential`)
)

// hidden stands for a secret.
const hidden = "xxxxx"

// hideSecrets takes out of each URL what signs in. Where one URL ends in a list is not known if
// a password has a comma: then more is hidden, and never less.
func hideSecrets(value string) string {
	var out strings.Builder
	starts := append(scheme.FindAllStringIndex(value, -1), []int{len(value), len(value)})
	out.WriteString(bare.ReplaceAllString(value[:starts[0][0]], hidden+"@"))
	for i, start := range starts[:len(starts)-1] {
		rest := value[start[1]:starts[i+1][0]] // to the next URL, with what is between them
		text := strings.TrimRight(rest, ", \t\n")
		out.WriteString(value[start[0]:start[1]] + hideInAddress(text) + rest[len(text):])
	}
	return out.String()
}

// hideInAddress is of a URL without its scheme.
func hideInAddress(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		text = hidden + text[at:]
	}
	before, query, found := strings.Cut(text, "?")
	if !found {
		return text
	}
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if value != "" && (err != nil || secretName.MatchString(plain)) {
			pairs[i] = name + "=" + hidden
		}
	}
	return before + "?" + strings.Join(pairs, "&")
}
