package main

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// copied are files of packages that are assets as they are: what runs in a frame, which the
// page sends it as text.
var copied = map[string]string{
	"plotly.js":  "plotly.js-dist-min/plotly.min.js",
	"widgets.js": "@jupyter-widgets/html-manager/dist/embed.js",
}

// build returns all assets by name.
func build(packages string) (map[string][]byte, error) {
	packages, err := filepath.Abs(packages)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	options := api.BuildOptions{
		AbsWorkingDir:     folder,
		NodePaths:         []string{packages},
		TsconfigRaw:       "{}", // of tsc alone: its paths are of this tree
		Outdir:            "/assets",
		Bundle:            true,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		LegalComments:     api.LegalCommentsNone, // they are in licences.txt
		Charset:           api.CharsetUTF8,
		Target:            api.ES2022,
		AssetNames:        "[name]",
		ChunkNames:        "[name]-[hash]",
		Loader:            map[string]api.Loader{".woff2": api.LoaderFile, ".woff": api.LoaderEmpty, ".ttf": api.LoaderEmpty},
		Metafile:          true,
	}
	page := options
	page.EntryPoints = []string{"main.ts", "page.css", "outputs.css", "katex.css"}
	page.Format, page.Splitting = api.FormatESModule, true
	record := options
	record.EntryPoints = []string{"record.ts", "status.ts"}
	record.Format = api.FormatIIFE

	files, used := map[string][]byte{}, map[string]bool{}
	for _, o := range []api.BuildOptions{page, record} {
		if err := add(files, used, o); err != nil {
			return nil, err
		}
	}
	for name, file := range copied {
		content, err := os.ReadFile(filepath.Join(packages, file))
		if err != nil {
			return nil, err
		}
		if files[name], err = withFonts(filepath.Dir(filepath.Join(packages, file)), content); err != nil {
			return nil, err
		}
		used[packageOf(file)] = true
	}
	if files["record.txt"], err = pattern(files); err != nil {
		return nil, err
	}
	delete(files, "record.js")
	files["licences.txt"], err = licences(packages, used)
	return files, err
}

// endsScript is what would end a script element, or change how its end is found.
var endsScript = regexp.MustCompile(`(?i)<(/script|script|!--)`)

// pattern is the page of a record with all that is the same in each. Who writes a record fills
// in {title}, {head}, {run} and {scripts}, which come in that order.
func pattern(files map[string][]byte) ([]byte, error) {
	page, err := os.ReadFile(filepath.Join(html, "record.html"))
	if err != nil {
		return nil, err
	}
	frame, err := os.ReadFile(filepath.Join(html, "frame.html"))
	if err != nil {
		return nil, err
	}
	if frame, err = json.Marshal(string(frame)); err != nil { // with every "<" escaped
		return nil, err
	}
	return []byte(strings.NewReplacer(
		"{style}", string(files["outputs.css"]),
		"{frame}", string(frame),
		"{record}", endsScript.ReplaceAllString(string(files["record.js"]), `\u003c$1`),
	).Replace(string(page))), nil
}

// add has esbuild make files, and notes which packages are in them.
func add(files map[string][]byte, used map[string]bool, options api.BuildOptions) error {
	result := api.Build(options)
	if len(result.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	for _, file := range result.OutputFiles {
		name := filepath.Base(file.Path)
		if strings.HasSuffix(name, ".woff") || strings.HasSuffix(name, ".ttf") {
			continue
		}
		files[name] = file.Contents
	}
	var meta struct {
		Inputs map[string]struct{}
	}
	if err := json.Unmarshal([]byte(result.Metafile), &meta); err != nil {
		return err
	}
	for input := range meta.Inputs {
		if _, file, ok := strings.Cut(filepath.ToSlash(input), "node_modules/"); ok {
			used[packageOf(file)] = true
		}
	}
	return nil
}

// fontFile is how a script of webpack's names a file beside it.
var fontFile = regexp.MustCompile(`\b\w\.p\+"([0-9a-f]+\.(?:woff2|woff|ttf|eot|svg))"`)

// withFonts puts the fonts that a script names into it, as a frame can load none. All browsers
// read the newest form, so the others are left out.
func withFonts(folder string, script []byte) ([]byte, error) {
	var failed error
	out := fontFile.ReplaceAllFunc(script, func(found []byte) []byte {
		name := string(fontFile.FindSubmatch(found)[1])
		if filepath.Ext(name) != ".woff2" {
			return []byte(`"data:,"`)
		}
		font, err := os.ReadFile(filepath.Join(folder, name))
		failed = errors.Join(failed, err)
		return []byte(`"data:font/woff2;base64,` + base64.StdEncoding.EncodeToString(font) + `"`)
	})
	return out, failed
}

// packageOf returns the package of a file below node_modules.
func packageOf(file string) string {
	parts := strings.Split(file, "/")
	if strings.HasPrefix(file, "@") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// licences returns those of all packages, with name and version.
func licences(packages string, used map[string]bool) ([]byte, error) {
	names := []string{}
	for name := range used {
		names = append(names, name)
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(packages, name, "package.json"))
		if err != nil {
			return nil, err
		}
		var about struct{ Version, License string }
		if err := json.Unmarshal(raw, &about); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := licenceOf(packages, name)
		if err != nil {
			return nil, fmt.Errorf("%s has no licence: %w", name, err)
		}
		fmt.Fprintf(&out, "%s %s (%s)\n\n%s\n\n", name, about.Version, about.License, strings.TrimSpace(string(text)))
	}
	return []byte(out.String()), nil
}

// licenceOf returns what a package has as its licence. That of Jupyter's widgets is in their
// repository alone; the package has those of what it contains.
func licenceOf(packages, name string) ([]byte, error) {
	if name != "@jupyter-widgets/html-manager" {
		return os.ReadFile(filepath.Join(packages, name, "LICENSE"))
	}
	parts, err := os.ReadFile(filepath.Join(packages, name, "dist/embed.js.LICENSE.txt"))
	return append([]byte(jupyterWidgetsLicence+"\n"), parts...), err
}

//go:embed jupyter-widgets.LICENSE.txt
var jupyterWidgetsLicence string
