package dependencies

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// What entries can be. None begins with a dash, so that none is an option, and none has a
// colon, a slash but npm's of a scope, or a character that a shell knows.
var (
	// pipEntry is a name with extras (PEP 508) and, before what follows, versions.
	pipEntry = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?) *(?:\[([A-Za-z0-9._, -]*)\])? *(.*)$`)
	pipName  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	pipRuns  = regexp.MustCompile(`[-_.]+`)
	// pipClause is a comparison of PEP 440, but ===, which takes any text.
	pipClause = regexp.MustCompile(`^(~=|==|!=|<=|>=|<|>) *(v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*` +
		`(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?)` +
		`(\.\*|\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$`)
	// pipArchive is an ending by which pip takes a requirement for a file's name
	// (pip/_internal/utils/filetypes.py), in a local version, and some more.
	pipArchive = regexp.MustCompile(`\.(?:zip|whl|egg|(?:tar\.)?(?:gz|bz2|xz|lz|lzma|zst)|tar|tgz|tbz|tbz2|txz|tlz)$`)

	// npmEntry is a name as npm takes new ones, and what follows its @.
	npmEntry = regexp.MustCompile(`^((?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*)(?:@(.*))?$`)
	// npmPart is what stands between spaces and || of a range of node-semver.
	npmPart = regexp.MustCompile(`^(?:\^|~|>=|<=|>|<|=)?v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)?)?$`)
	// npmTag is a tag like latest. None has a dot, so that none is the name of an archive.
	npmTag = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	// npmArchive is a name that npm takes for a file's.
	npmArchive  = regexp.MustCompile(`\.(?:tgz|tar|tar\.gz)$`)
	npmOperator = regexp.MustCompile(`(\^|~|>=|<=|>|<|=) +`)

	// aptEntry is a name of Debian Policy 5.6.1 and a version of 5.6.12. A dash at its
	// end would have apt remove the package; a plus there, and what is a regular expression
	// too, is left to the installer, which takes exact names alone.
	aptEntry = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]*[a-z0-9+])(?:=((?:[0-9]+:)?[0-9][A-Za-z0-9.+~-]*))?$`)
)

var (
	errPip = errors.New("is not a package's name with versions, such as polars or polars==1.*; options, URLs, paths and markers are not taken")
	errNPM = errors.New("is not a package's name with versions, such as lodash or lodash@^4; options, URLs, paths and aliases are not taken")
	errAPT = errors.New("is not the name of a Debian package, such as jq or jq=1.7.1-6; options, files and releases are not taken")
)

func parsePip(given string) (entry, error) {
	m := pipEntry.FindStringSubmatch(given)
	if m == nil {
		return entry{}, errPip
	}
	e := entry{name: pipNormal(m[1])}
	e.text = e.name
	if extras := splitList(m[2]); len(extras) > 0 {
		for i, extra := range extras {
			if !pipName.MatchString(extra) {
				return entry{}, errPip
			}
			extras[i] = pipNormal(extra)
		}
		e.text += "[" + sorted(extras) + "]"
	}
	rest := m[3]
	if inner, bracketed := strings.CutPrefix(rest, "("); bracketed { // as PEP 508 has it too
		if rest, bracketed = strings.CutSuffix(inner, ")"); !bracketed {
			return entry{}, errPip
		}
	}
	clauses := splitList(strings.ToLower(rest))
	for i, clause := range clauses {
		c := pipClause.FindStringSubmatch(clause)
		if c == nil || c[3] != "" && c[1] != "==" && c[1] != "!=" || pipArchive.MatchString(c[3]) {
			return entry{}, errPip
		}
		clauses[i] = c[1] + c[2] + c[3]
	}
	e.text += sorted(clauses)
	return e, nil
}

// pipNormal is a name as PEP 503 has it.
func pipNormal(name string) string { return strings.ToLower(pipRuns.ReplaceAllString(name, "-")) }

// splitList splits at commas. A list that is empty between two has an empty part.
func splitList(text string) []string {
	if strings.Trim(text, " ") == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.Trim(parts[i], " ")
	}
	return parts
}

func sorted(parts []string) string {
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ",")
}

func parseNPM(given string) (entry, error) {
	m := npmEntry.FindStringSubmatch(given)
	if m == nil || npmArchive.MatchString(m[1]) {
		return entry{}, errNPM
	}
	e := entry{name: m[1], text: m[1]}
	if !strings.HasPrefix(given, m[1]+"@") {
		return e, nil
	}
	wanted, err := npmRange(m[2])
	e.text += "@" + wanted
	return e, err
}

// npmRange is a tag, or a range in its one form (node-semver's README, "Ranges").
func npmRange(text string) (string, error) {
	if npmTag.MatchString(text) {
		return text, nil
	}
	var either []string
	for _, all := range strings.Split(text, "||") {
		fields := strings.Fields(npmOperator.ReplaceAllString(all, "$1"))
		hyphen := len(fields) == 3 && fields[1] == "-"
		for i, field := range fields {
			if !npmPart.MatchString(field) && (!hyphen || i != 1) {
				return "", errNPM
			}
		}
		if len(fields) == 0 {
			return "", errNPM
		}
		either = append(either, strings.Join(fields, " "))
	}
	return strings.Join(either, " || "), nil
}

func parseAPT(given string) (entry, error) {
	m := aptEntry.FindStringSubmatch(given)
	if m == nil {
		return entry{}, errAPT
	}
	return entry{name: m[1], text: given}, nil
}

// parsePrefixed is parseAPT for packages of one kind, whose names may be written as those
// who made them do: MASS is r-cran-mass.
func parsePrefixed(prefix, given string) (entry, error) {
	name, version, pinned := strings.Cut(given, "=")
	name = strings.ToLower(name)
	if pinned {
		version = "=" + version
	}
	e, err := parseAPT(name + version)
	if err != nil || strings.HasPrefix(name, prefix) {
		return e, err
	}
	return entry{name: prefix + e.name, text: prefix + e.text}, nil
}
