package dependencies

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Where settings of pip, npm and apt have credentials: in URLs, and as values.
var (
	secretInURL = regexp.MustCompile(`://([^/\s@'"]+)@`)
	secretValue = regexp.MustCompile(`(?im)(?:_authToken|_auth|_password|password|token)\s*[=:]\s*["']?([^\s"']+)`)
)

// fingerprint names settings by what decides where packages come from: another token makes
// no other packages.
func fingerprint(settings map[string][]byte) string {
	secrets := hide(settings)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		parts = append(parts, name, secrets.Replace(string(settings[name])))
	}
	return hash(parts...)
}

// minSecret is the length below which hiding would hide words.
const minSecret = 4

// hide returns what takes the credentials in settings out of a text. The installers mask
// them too: this holds where one of them, or its client, does not.
func hide(settings map[string][]byte) *strings.Replacer {
	found := map[string]bool{}
	add := func(secret string) {
		if len(secret) >= minSecret {
			found[secret] = true
		}
		if plain, err := url.PathUnescape(secret); err == nil && len(plain) >= minSecret {
			found[plain] = true
		}
	}
	for _, content := range settings {
		for _, m := range secretInURL.FindAllStringSubmatch(string(content), -1) {
			add(m[1])
			if _, password, has := strings.Cut(m[1], ":"); has {
				add(password)
			}
		}
		for _, m := range secretValue.FindAllStringSubmatch(string(content), -1) {
			add(m[1])
		}
	}
	var pairs []string
	longestFirst := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longestFirst {
		pairs = append(pairs, secret, "***")
	}
	return strings.NewReplacer(pairs...)
}
