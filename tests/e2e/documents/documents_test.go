// Package documents holds tests alone: what the documents say of the program and the tree is so.
package documents

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPromisesAreHeld: each test that SECURITY.md names is in the package that it names, and
// each adversarial case is there.
func TestPromisesAreHeld(t *testing.T) {
	document, err := os.ReadFile("../../../SECURITY.md")
	require.NoError(t, err)
	sources := map[string]string{} // of tests, by package
	err = filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "../../.." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			source, err := os.ReadFile(path)
			sources[filepath.ToSlash(filepath.Dir(path))] += string(source)
			return err
		}
		return nil
	})
	require.NoError(t, err)
	found := 0
	for line := range strings.Lines(string(document)) {
		of, cell := "", line[strings.LastIndex(strings.TrimRight(line, " |\n"), "|")+1:] // a row's last
		for _, m := range regexp.MustCompile("`([\\w/]+)`|\\b((?:Test|Fuzz)[A-Z]\\w+)").FindAllStringSubmatch(cell, -1) {
			if m[1] != "" {
				of = "../../../" + m[1]
				continue
			}
			require.Regexp(t, `func `+m[2]+`\w*\(`, sources[of], "%s is not in %s", m[2], of)
			found++
		}
	}
	require.Greater(t, found, 50)
	for _, id := range regexp.MustCompile(`\b[A-FS]\d+\b`).FindAllString(string(document), -1) {
		cases, err := filepath.Glob("../../../tests/adversarial/cases/" + id + "-*.yaml")
		require.NoError(t, err)
		require.NotEmpty(t, cases, id)
	}
}

// TestDocumentsNameTheProgram: what people are to type has the program's path, from the checkout. Who
// installs it has no checkout.
func TestDocumentsNameTheProgram(t *testing.T) {
	files := documents(t)
	typed := regexp.MustCompile(`(?m)^(?:    |\t)?\s*(?:[A-Z_]+=\S+ |.*\| )*((?:[^\s\x60]*/)?notebox) (?:serve|doctor|image|key|chat|mcp|discord|healthcheck|config|version)\b.*$`)
	inline := regexp.MustCompile("`(?:[^`\n]*\\| )?((?:bin/)?notebox) (?:serve|doctor|image|key|chat|mcp|discord|healthcheck|config|version) [^`\n]+`")
	installs := regexp.MustCompile(`(?s)\n## Install it\n.*?\n## `)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		text = installs.ReplaceAll(text, nil)
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

// documents are the paths of all documents: those at the top, and docs with its folders.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	require.NoError(t, filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// TestDocumentsLead: each link of a document to a file of the tree leads to one, and to a
// heading of it if it names one.
func TestDocumentsLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // elsewhere
			}
			path := file
			if to != "" {
				path = filepath.Join(filepath.Dir(file), to)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s: %s", file, m[0])
			if heading != "" {
				require.Contains(t, headings(t, path), heading, "%s: %s", file, m[0])
			}
			found++
		}
	}
	require.Greater(t, found, 50)
}

// headings are the anchors of a document, as GitHub makes them.
func headings(t *testing.T, path string) (anchors []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		words := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(words, " ", "-"))
	}
	return anchors
}

// TestNoticeIsCurrent: NOTICE names what the program is made of now.
func TestNoticeIsCurrent(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("../../../scripts/notice.sh", "--check").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
