package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// files are the settings of the registries' clients: of each the file that its flag names,
// or what this host's own client would take.
func (s *dependencySettings) files() (map[string][]byte, error) {
	home, _ := os.UserHomeDir()     // "": there is none
	config, _ := os.UserConfigDir() // as XDG has it
	etc := cmp.Or(s.etc, "/etc")
	all := map[string][]byte{}
	for _, f := range []struct {
		flag, given, name string
		own               string                  // where the host's is, by a variable, and nowhere else then
		host              []string                // where it may be else, the first that is there
		finish            func(raw []byte) []byte // of what was read; nil: nothing
	}{
		{
			"--dependencies-pip-conf", s.pipConf, "pip.conf", os.Getenv("PIP_CONFIG_FILE"),
			[]string{below(config, "pip/pip.conf"), below(home, ".pip/pip.conf"), below(etc, "xdg/pip/pip.conf"), below(etc, "pip.conf")}, s.withHostIndexes,
		},
		{
			"--dependencies-npmrc", s.npmrc, "npmrc", cmp.Or(os.Getenv("NPM_CONFIG_USERCONFIG"), os.Getenv("npm_config_userconfig")),
			[]string{below(home, ".npmrc"), below(etc, "npmrc")}, s.withHostRegistries,
		},
		{"--dependencies-sources", s.sources, "sources.list", "", nil, nil},
	} {
		if f.own != "" {
			f.host = []string{f.own}
		}
		content, err := readSettings(f.given, f.host)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.flag, err)
		}
		if f.finish != nil {
			content = f.finish(content)
		}
		if content != nil {
			all[f.name] = content
		}
	}
	return all, nil
}

// below is a file of a folder, or "" where the folder is not known: it would be one of the
// working directory, which is not the operator's word.
func below(folder, name string) string {
	if !filepath.IsAbs(folder) {
		return ""
	}
	return filepath.Join(folder, name)
}

// maxSettings of one file, bytes: a long list of sources.
const maxSettings = 64 << 10

// readSettings reads the file that was given, or else the first of this host's; nil where
// there is none.
func readSettings(given string, host []string) ([]byte, error) {
	switch given {
	case off:
		return nil, nil
	case "":
	default:
		host = nil
	}
	for _, name := range append([]string{given}, host...) {
		info, err := os.Stat(name)
		if name == "" || given == "" && (err != nil || !info.Mode().IsRegular()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Size() > maxSettings {
			return nil, fmt.Errorf("%s is larger than %d bytes", name, maxSettings)
		}
		content, err := os.ReadFile(name)
		if given == "" && errors.Is(err, os.ErrPermission) {
			continue
		}
		return content, err
	}
	return nil, nil
}

// withHostIndexes has the host's variables of pip in its pip.conf, over what is there: pip
// gives them precedence, and an installer's sandbox does not have them.
func (s *dependencySettings) withHostIndexes(conf []byte) []byte {
	if s.pipConf != "" {
		return conf
	}
	var options []string
	names := map[string]bool{}
	for _, v := range []struct{ variable, option string }{{"PIP_INDEX_URL", "index-url"}, {"PIP_EXTRA_INDEX_URL", "extra-index-url"}} {
		if urls := strings.Fields(os.Getenv(v.variable)); len(urls) > 0 {
			options = append(options, v.option+" = "+strings.Join(urls, "\n    "))
			names[v.option] = true
		}
	}
	if len(options) == 0 {
		return conf
	}
	return setGlobal(conf, names, strings.Join(options, "\n"))
}

// withHostRegistries fills the variables of an .npmrc in, and has the host's registries and
// what signs in to them at its end: npm gives npm_config_… precedence, in any case of it.
// Source: npm's documentation of its configuration, "Environment Variables".
func (s *dependencySettings) withHostRegistries(rc []byte) []byte {
	rc = expandNPM(rc)
	if s.npmrc != "" {
		return rc
	}
	const prefix = "npm_config_"
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(variable, "=")
		if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) || value == "" || strings.ContainsAny(value, "\r\n") {
			continue
		}
		key := name[len(prefix):]
		switch {
		case strings.EqualFold(key, "registry"):
			key = "registry"
		case strings.HasPrefix(key, "//") || strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry"):
		default:
			continue
		}
		if len(rc) > 0 && !bytes.HasSuffix(rc, []byte("\n")) {
			rc = append(rc, '\n')
		}
		rc = append(rc, key+"="+value+"\n"...)
	}
	return rc
}

// setGlobal puts options of these names into [global] of a pip.conf, and takes out those
// that are there, in [install] too, which comes before [global]. Python's configparser
// refuses a section or an option that is there twice.
func setGlobal(conf []byte, names map[string]bool, options string) []byte {
	var out []string
	section, dropping, put := "", false, false
	for line := range strings.Lines(string(conf)) {
		line = strings.TrimRight(line, "\r\n")
		plain := strings.TrimSpace(line)
		switch name, _, _ := strings.Cut(strings.Replace(plain, ":", "=", 1), "="); {
		case strings.HasPrefix(line, "["):
			section, dropping = strings.TrimRight(plain, "]")[1:], false
		case dropping && (plain == "" || line != strings.TrimLeft(line, " \t")): // goes on with the option
		default:
			option := strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-"), "--")
			dropping = (section == "global" || section == "install") && names[option]
		}
		if dropping {
			continue
		}
		if out = append(out, line); strings.HasPrefix(line, "[") && section == "global" {
			out, put = append(out, options), true
		}
	}
	if !put {
		out = append(out, "[global]", options)
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

// npmName is ${NAME} or ${NAME?} in a setting of npm's, and the backslashes before it
// (@npmcli/config, lib/env-replace.js).
var npmName = regexp.MustCompile(`(\\*)\$\{([^${}?]+)(\?)?\}`)

// expandNPM puts the host's variables into an .npmrc as npm does: it mostly names its token
// so. What is not set stays, or is empty with a question mark.
func expandNPM(rc []byte) []byte {
	return npmName.ReplaceAllFunc(rc, func(found []byte) []byte {
		m := npmName.FindSubmatch(found)
		escapes := len(m[1])
		if escapes%2 == 1 {
			return found[(escapes+1)/2:]
		}
		value, set := os.LookupEnv(string(m[2]))
		if !set && len(m[3]) == 0 {
			value = "${" + string(m[2]) + "}"
		}
		return append(bytes.Clone(m[1][escapes/2:]), value...)
	})
}

// trusted are the certificates for the registry: what was given, or what this host's tools
// are told to trust, or its own.
func (s *dependencySettings) trusted() ([]byte, error) {
	switch s.ca {
	case off:
		return nil, nil
	case "":
	default:
		ca, err := readCA(s.ca)
		if err != nil {
			return nil, fmt.Errorf("--dependencies-ca: %w", err)
		}
		return ca, nil
	}
	for _, name := range []string{
		os.Getenv("SSL_CERT_FILE"), os.Getenv("PIP_CERT"), os.Getenv("REQUESTS_CA_BUNDLE"), os.Getenv("CURL_CA_BUNDLE"),
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
	} {
		if name == "" {
			continue
		}
		if ca, err := readCA(name); err == nil {
			return ca, nil
		}
	}
	return nil, nil // the image's own are there in any case
}
