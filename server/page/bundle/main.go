// Command bundle makes server/page/assets of server/page/source and of the npm packages that
// scripts/page.sh has installed.
//
//	go run ./server/page/bundle -packages .page/node_modules [-check]
//
// With -check it changes nothing, and fails where the assets are not what it would make.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	packages := flag.String("packages", ".page/node_modules", "the `folder` of npm packages")
	check := flag.Bool("check", false, "compare only")
	flag.Parse()
	if err := run(*packages, *check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

const (
	source = "server/page/source"
	html   = "server/page/html"
	assets = "server/page/assets"
)

func run(packages string, check bool) error {
	files, err := build(packages)
	if err != nil {
		return err
	}
	if check {
		return compare(files)
	}
	old, err := filepath.Glob(filepath.Join(assets, "*"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(assets, 0o755); err != nil {
		return err
	}
	total := 0
	for name, content := range files {
		name, content, err = packed(name, content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(assets, name), content, 0o644); err != nil {
			return err
		}
		total += len(content)
	}
	fmt.Printf("%d files, %d bytes in %s\n", len(files), total, assets)
	return nil
}

// packed returns a file as it is embedded. A font is compressed by itself.
func packed(name string, content []byte) (string, []byte, error) {
	if filepath.Ext(name) == ".woff2" {
		return name, content, nil
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return "", nil, err
	}
	if _, err := w.Write(content); err != nil {
		return "", nil, err
	}
	err = w.Close()
	return name + ".gz", out.Bytes(), err
}

// compare is by content: another Go may compress in another way.
func compare(files map[string][]byte) error {
	entries, err := os.ReadDir(assets)
	if err != nil {
		return err
	}
	wrong := []string{}
	seen := map[string]bool{}
	for _, entry := range entries {
		name, isPacked := strings.CutSuffix(entry.Name(), ".gz")
		content, err := os.ReadFile(filepath.Join(assets, entry.Name()))
		if err == nil && isPacked {
			content, err = unpacked(content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
		seen[name] = true
		if want, ok := files[name]; !ok || !bytes.Equal(want, content) {
			wrong = append(wrong, name)
		}
	}
	for name := range files {
		if !seen[name] {
			wrong = append(wrong, name)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return errors.New("the assets are not what the source makes, run scripts/page.sh: " + strings.Join(wrong, ", "))
	}
	return nil
}

func unpacked(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
