package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPromisesAreHeld: each test that SECURITY.md names is there, and each adversarial case.
func TestPromisesAreHeld(t *testing.T) {
	document, err := os.ReadFile("../../SECURITY.md")
	require.NoError(t, err)
	var sources strings.Builder
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "../.." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			source, err := os.ReadFile(path)
			sources.Write(source)
			return err
		}
		return nil
	})
	require.NoError(t, err)
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(string(document), -1)
	require.Greater(t, len(named), 50)
	for _, name := range named {
		require.Regexp(t, `func `+name+`\w*\(`, sources.String(), name)
	}
	for _, id := range regexp.MustCompile(`\b[A-F]\d+\b`).FindAllString(string(document), -1) {
		cases, err := filepath.Glob("../../adversarial/cases/" + id + "-*.yaml")
		require.NoError(t, err)
		require.NotEmpty(t, cases, id)
	}
}

// TestDocumentsNameTheProgram: what people are to type has the program's path, from the checkout.
func TestDocumentsNameTheProgram(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	typed := regexp.MustCompile(`(?m)^(?:    |\t)?\s*(?:[A-Z_]+=\S+ |.*\| )*((?:\S*/)?notebox) (?:serve|image|key|chat|mcp|discord|healthcheck)\b.*$`)
	inline := regexp.MustCompile("`(?:[^`\n]*\\| )?((?:bin/)?notebox) (?:serve|image|key|chat|mcp|discord|healthcheck) [^`\n]+`")
	found := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, pattern := range []*regexp.Regexp{typed, inline} {
			for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
				require.Equal(t, "bin/notebox", m[1], "%s: %s", file, m[0])
				found++
			}
		}
		require.NotRegexp(t, `(?m)notebox key( *#.*)?$`, string(text), "%s: a key has a name", file)
	}
	require.Greater(t, found, 10)
}
