// Notice writes NOTICE to stdout: what the program is made of besides its own code, whose
// each part is, and the licences that it comes with.
//
//  1. go list says which modules the program is compiled from, on Linux, where it runs.
//  2. Of each, the files of its folder in the module cache are read that state licences and
//     notices. A text that is not known is an error: somebody has to read it.
//  3. What the program embeds besides is listed below. Each licence's text is written once.
package main

import (
	"bytes"

	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is something that is in the program.
type part struct {
	name     string
	licences []string // SPDX's names
	holders  []string // its lines of copyright
	notice   string   // its NOTICE file; "" for none
	texts    []string // of its licences
}

// embedded are parts that are no imported module: NAME and the file of its licence.
var embedded = [][2]string{
	{"Swagger UI", "server/pages/assets/swagger-ui.LICENSE.txt.gz"},
	{"Redoc", "server/pages/assets/redoc.LICENSE.txt.gz"},
	{"What the page at / is made of (its licences.txt names each part)", "server/page/assets/licences.txt.gz"},
}

// sign is a phrase that only texts of one licence have.
type sign struct{ licence, phrase string }

var signs = []sign{
	{"Apache-2.0", "apache license version 2.0"},
	{"BSD-3-Clause", "neither the name"},
	{"ISC", "permission to use, copy, modify, and"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"MPL-2.0", "mozilla public license version 2.0 1. definitions"},
	{"Unlicense", "this is free and unencumbered software"},
	{"Zlib", "this software is provided 'as-is'"},
}

var (
	statement = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|unlicense)(\.(txt|md))?$`)
	holder    = regexp.MustCompile(`(?im)^[\s#*/-]*(copyright\s+(?:\(c\)|©|\d).*?|\(c\)\s+\d.*?)[\s*]*$`)
	notOurs   = regexp.MustCompile(`\[yyyy\]|\{yyyy\}|<year>`) // the Apache licence's own example
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("notice: ")
	parts, err := parts()
	if err != nil {
		log.Fatal(err)
	}
	if err := write(os.Stdout, parts); err != nil {
		log.Fatal(err)
	}
}

// parts returns all that the program is made of, by name.
func parts() (all []part, err error) {
	add := func(name string, files ...string) {
		p, failed := read(name, files)
		all, err = append(all, p), errors.Join(err, failed)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	add("The Go standard library", filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	for _, e := range embedded {
		add(e[0], e[1])
	}
	seccomp, err := modules("-m", "-f", "{{.Path}}\t{{.Dir}}", "github.com/moby/profiles/seccomp")
	if err != nil {
		return nil, err
	}
	imported, err := modules("-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "./cmd/notebox")
	if err != nil {
		return nil, err
	}
	maps.Copy(imported, seccomp) // whose profile runner/posture/seccomp.json is made from
	for _, module := range slices.Sorted(maps.Keys(imported)) {
		if module == "notebox" {
			continue
		}
		entries, err := os.ReadDir(imported[module])
		if err != nil {
			return nil, err
		}
		var files []string
		for _, e := range entries {
			if statement.MatchString(e.Name()) {
				files = append(files, filepath.Join(imported[module], e.Name()))
			}
		}
		add(module, files...)
	}
	return all, err
}

// modules are folders by path, as go list says.
func modules(args ...string) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list"}, args...)...)
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			folders[path] = folder
		}
	}
	return folders, nil
}

// read reads a part's statements.
func read(name string, files []string) (part, error) {
	p := part{name: name}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return p, err
		}
		if strings.HasSuffix(file, ".gz") {
			unpacked, err := gzip.NewReader(bytes.NewReader(raw))
			if err != nil {
				return p, fmt.Errorf("%s: %w", file, err)
			}
			if raw, err = io.ReadAll(unpacked); err != nil {
				return p, fmt.Errorf("%s: %w", file, err)
			}
		}
		text := strings.ReplaceAll(string(raw), "\r\n", "\n")
		for _, m := range holder.FindAllStringSubmatch(text, -1) {
			if line := strings.Join(strings.Fields(m[1]), " "); !notOurs.MatchString(line) && !slices.Contains(p.holders, line) {
				p.holders = append(p.holders, line)
			}
		}
		if strings.HasPrefix(strings.ToLower(filepath.Base(file)), "notice") {
			p.notice = strings.TrimSpace(text)
			continue
		}
		p.licences = append(p.licences, licencesOf(text)...)
		p.texts = append(p.texts, text)
	}
	slices.Sort(p.licences)
	p.licences = slices.Compact(p.licences)
	if len(p.licences) == 0 {
		return p, fmt.Errorf("%s: no licence that is known in %q", name, files)
	}
	return p, nil
}

// licencesOf are the licences whose texts are in text.
func licencesOf(text string) (found []string) {
	plain := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, s := range signs {
		if strings.Contains(plain, s.phrase) {
			found = append(found, s.licence)
		}
	}
	if strings.Contains(plain, "redistribution and use in source and binary forms") && !slices.Contains(found, "BSD-3-Clause") {
		found = append(found, "BSD-2-Clause")
	}
	return found
}

func write(to io.Writer, parts []part) error {
	var out strings.Builder
	out.WriteString("notebox\n\nLicensed under the Apache License, Version 2.0; see LICENSE.\n" +
		"scripts/notice.sh writes this file.\n\nThe program contains what follows.\n")
	wanted := map[string]string{} // the shortest text of each licence
	for _, p := range parts {
		fmt.Fprintf(&out, "\n%s (%s)\n", p.name, strings.Join(p.licences, " and "))
		for _, line := range p.holders {
			fmt.Fprintf(&out, "    %s\n", line)
		}
		for _, text := range p.texts {
			for _, l := range licencesOf(text) {
				if have, ok := wanted[l]; !ok || len(text) < len(have) {
					wanted[l] = text
				}
			}
		}
	}
	for _, p := range parts {
		if p.notice != "" {
			fmt.Fprintf(&out, "\n%s\nThe notice of %s:\n\n%s\n", strings.Repeat("-", 72), p.name, p.notice)
		}
	}
	delete(wanted, "Apache-2.0") // LICENSE has it
	for _, l := range slices.Sorted(maps.Keys(wanted)) {
		text := strings.TrimSpace(holder.ReplaceAllString(wanted[l], ""))
		fmt.Fprintf(&out, "\n%s\nThe text of %s, for each holder of copyright above:\n\n%s\n", strings.Repeat("-", 72), l, text)
	}
	_, err := io.WriteString(to, out.String())
	return err
}
