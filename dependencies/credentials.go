package dependencies

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Credential signs requests to a registry's host in. It stays in the service.
type Credential struct {
	Scheme        string // http or https
	Host          string // with its port
	Path          string // that the settings name it for
	Authorization string // the header's value
}

// Separate takes the credentials out of the settings of pip, npm and apt, which have the
// names of Options.Settings. What is left has no comments either: an old password may be in
// one. A token in the path or the query of a URL is left.
func Separate(settings map[string][]byte) (public map[string][]byte, found []Credential, err error) {
	s := separation{clear: map[string]bool{}, npm: map[string]map[string]string{}}
	public = map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text := comment.ReplaceAllString(lineEnd.ReplaceAllString(string(settings[name]), "\n"), "")
		if name == "pip.conf" {
			text = pipProxy.ReplaceAllString(text, "")
		}
		if s.ownNPM = name == "npmrc"; s.ownNPM {
			text = s.takeKeys(text)
		}
		public[name] = []byte(place.ReplaceAllStringFunc(text, s.takeURL))
		if s.err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, s.err)
		}
	}
	return public, append(s.found, s.ofNPM()...), nil
}

// separation is what Separate has seen.
type separation struct {
	found  []Credential
	ownNPM bool                         // it looks at the settings of npm
	clear  map[string]bool              // hosts that those name with http://
	npm    map[string]map[string]string // what npm has of a host and path: "packages.test/npm/", by name
	err    error
}

var (
	// lineEnd is one as pip and npm have it beside \n.
	lineEnd = regexp.MustCompile(`\r\n?`)
	// pipProxy is the option of pip for one, whose password may stand in no URL. A sandbox has
	// its own.
	pipProxy = regexp.MustCompile(`(?im)^[ \t]*(?:--)?proxy[ \t]*[=:][ \t]*(?:\n[ \t]+)?.*(?:\n|\z)`)
	// comment is a line of one.
	comment = regexp.MustCompile(`(?m)^[ \t]*[#;].*(?:\n|\z)`)
	// place is a URL to the end of its path: scheme, name and password, host, path.
	place = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*)://(?:([^\s/?#]*)@)?([^\s/?#@]*)([^\s?#]*)`)
	// hostAndPort is what a URL's host is, and what may follow it in a list or in quotes.
	hostAndPort = regexp.MustCompile(`^((?:\[[0-9A-Fa-f:.]+\]|[^][:"',]*)(?::[0-9]*)?)["',]*$`)
)

var errURL = errors.New("a URL has a host that cannot be read: in a name or a password, what is not a letter or a digit must be percent-encoded")

// takeURL returns a URL without its name and password.
func (s *separation) takeURL(given string) string {
	m := place.FindStringSubmatch(given)
	host := hostAndPort.FindStringSubmatch(m[3])
	if host == nil {
		s.err = errURL
		return ""
	}
	c := Credential{Scheme: strings.ToLower(m[1]), Path: strings.TrimRight(m[4], `"',`)}
	if c.Host = withPort(host[1], c.Scheme); c.Scheme == "http" && s.ownNPM {
		s.clear[c.Host] = true
	}
	if m[2] != "" && portOf[c.Scheme] != "" {
		user, password, _ := strings.Cut(m[2], ":")
		c.Authorization = basic(decoded(user), decoded(password))
		s.found = append(s.found, c)
	}
	return m[1] + "://" + m[3] + m[4]
}

var portOf = map[string]string{"http": "80", "https": "443"}

// withPort adds a scheme's port to a host that has none.
func withPort(host, scheme string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if port == "" {
		port = portOf[scheme]
	}
	return net.JoinHostPort(strings.ToLower(name), port)
}

// decoded takes percent-encoding off, if there is any.
func decoded(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

var (
	// npmRegistry is a key whose value is an address.
	npmRegistry = regexp.MustCompile(`^(?:@[^:]+:)?registry$`)
	// npmSecret is a key whose value nobody else may know: all that npm has of one host
	// begins with //, and what it never shows with _. A proxy's password may stand in no URL.
	npmSecret = regexp.MustCompile(`(?i)^//|^_|proxy$|auth|password|token|username|key|cert|otp|secret`)
)

// takeKeys returns an .npmrc without the lines of keys that are secret, of which those of
// one host are kept in npm.
func (s *separation) takeKeys(text string) string {
	var public strings.Builder
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSuffix(npmValue(key), "[]")
		if npmRegistry.MatchString(key) || !npmSecret.MatchString(key) {
			public.WriteString(line)
			continue
		}
		colon := strings.LastIndex(key, ":")
		if !strings.HasPrefix(key, "//") || colon < 0 {
			continue // npm takes those of no host no more
		}
		at := key[len("//"):colon]
		if s.npm[at] == nil {
			s.npm[at] = map[string]string{}
		}
		s.npm[at][key[colon+1:]] = npmValue(value)
	}
	return public.String()
}

// npmEnd is where a comment begins in a value that is not quoted.
var npmEnd = regexp.MustCompile(`[^\\][;#]`)

// npmValue is a key or a value as npm reads it (the package ini, unsafe in lib/ini.js).
func npmValue(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 1 && text[0] == text[len(text)-1] && strings.ContainsRune(`"'`, rune(text[0])) {
		inner := text[1 : len(text)-1]
		if text[0] == '"' && json.Unmarshal([]byte(text), &inner) != nil {
			return text
		}
		return inner
	}
	if end := npmEnd.FindStringIndex(text); end != nil {
		text = strings.TrimSpace(text[:end[1]-1])
	}
	return strings.NewReplacer(`\\`, `\`, `\;`, `;`, `\#`, `#`).Replace(text)
}

// ofNPM are the credentials of npm. They are for https, and in the clear only for a host
// that npm's own settings name so: apt's often name the same host in the clear.
func (s *separation) ofNPM() (found []Credential) {
	for _, at := range slices.Sorted(maps.Keys(s.npm)) {
		authorization := npmAuthorization(s.npm[at])
		if authorization == "" {
			continue
		}
		host, path, _ := strings.Cut(at, "/")
		for _, scheme := range []string{"https", "http"} {
			c := Credential{scheme, withPort(host, scheme), "/" + path, authorization}
			if scheme == "https" || s.clear[c.Host] {
				found = append(found, c)
			}
		}
	}
	return found
}

// npmAuthorization is what npm would send (npm-registry-fetch, lib/auth.js); "": nothing.
func npmAuthorization(of map[string]string) string {
	password, err := base64.StdEncoding.DecodeString(of["_password"])
	switch {
	case of["_authToken"] != "":
		return "Bearer " + of["_authToken"]
	case of["username"] != "" && len(password) > 0 && err == nil:
		return basic(of["username"], string(password))
	case of["_auth"] != "":
		return "Basic " + of["_auth"]
	}
	return ""
}
