package dify

import (
	"path"
	"strings"

	"notebox/runner"
)

// workspaceDir is what the wrapper calls runner.DataFolder, and so what existing agents'
// prompts do.
const workspaceDir = "/workspace"

// cleanPath returns a path relative to runner.DataFolder. Those outside are refused, and those that
// name the folder itself.
func cleanPath(field, name string) (string, error) {
	clean := path.Join(runner.DataFolder, name)
	if path.IsAbs(name) {
		clean = path.Clean(name)
	}
	for _, dir := range []string{runner.DataFolder, workspaceDir} {
		if clean == dir || strings.HasSuffix(name, "/") {
			return "", invalid(field, "must name a file, not a folder")
		}
		if inside, ok := strings.CutPrefix(clean, dir+"/"); ok {
			return inside, nil
		}
	}
	return "", invalid(field, "must be relative, or within %s or %s, which are the same folder; %s is not a path there", runner.DataFolder, workspaceDir, quote(name))
}

// absolute is the path that code in the sandbox opens.
func absolute(clean string) string { return runner.DataFolder + "/" + clean }
