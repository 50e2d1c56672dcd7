package dependencies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"notebox/environments"
	"notebox/runner"
)

// What an installer leaves in /mnt/data.
const (
	archiveFile  = "layer.tar"
	resolvedFile = "resolved.json"
	hostsFile    = "hosts.json"
)

const (
	// hostsTimeout of an installer that says its hosts: it runs the client a few times.
	hostsTimeout = 30 * time.Second
	// maxInstallerOutput is more than any client says of a large set.
	maxInstallerOutput = 4 << 20
	maxPackages        = 5000 // of one set with what it needs: npm's large ones have 2,000
	// installerSuffix tells an installer's sandbox from those of its environment, which
	// have another kernel.
	installerSuffix = "+installer"
)

// cell runs an installer, and leaves of /mnt/data what is to come back.
//
// No module is looked for in the current folder: packages are unpacked below it, and what IPython
// imports when it shows an error would be theirs.
const cell = `import os, runpy, shutil, sys
sys.path[:] = [_path for _path in sys.path if os.path.isabs(_path)]
try:
    runpy.run_path(%s, run_name="__main__")
finally:
    for _entry in os.scandir("/mnt/data"):
        if _entry.name not in %s:
            if _entry.is_dir(follow_symlinks=False):
                shutil.rmtree(_entry.path, ignore_errors=True)
            else:
                os.unlink(_entry.path)
`

// literal is a value in JSON's notation, which is Python's too for texts and lists of them.
func literal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts alone are written
	}
	return string(raw)
}

// run has the environment's installer do one phase, and calls then with what came of it while
// it still has its place. It returns what then does.
func (l *Layers) run(ctx context.Context, r Request, request map[string]any, network runner.Network, s *sink, then func(*runner.Outcome, error) error) error {
	book, err := l.options.Notebook(fmt.Sprintf(cell, literal(r.Environment.Dependencies.Installer), literal([]string{archiveFile, resolvedFile, hostsFile})))
	if err != nil {
		return fmt.Errorf("dependencies: %w", err)
	}
	spec := runner.Spec{
		ID: r.ID, Owner: r.Owner,
		Environment: runner.Environment{Name: r.Base.Name + installerSuffix, Image: r.Base.Image},
		Notebook:    book,
		Inputs:      []runner.Input{inputOf("request.json", []byte(literal(request)))},
		Network:     network,
		Limits:      l.limits(network != nil),
		StopOnError: true,
	}
	for _, name := range slices.Sorted(maps.Keys(l.options.Settings)) {
		spec.Inputs = append(spec.Inputs, inputOf("settings/"+name, l.options.Settings[name]))
	}
	if l.options.Installs != nil {
		leave, err := l.options.Installs.Enter(ctx, r.Owner)
		if err != nil {
			return then(nil, err)
		}
		defer leave()
	}
	began := time.Now()
	out, err := l.options.Runner.Run(ctx, spec, s)
	s.flush()
	if r.Ran != nil {
		r.Ran(out, err, time.Since(began), spec.Limits)
	}
	return then(out, err)
}

func (l *Layers) limits(install bool) runner.Limits {
	limits := l.options.Limits
	limits.Timeout, limits.Output, limits.Files = hostsTimeout, maxInstallerOutput, 3
	if install {
		limits.Timeout = l.options.Timeout
	}
	limits.FileSize = l.options.MaxSize + maxArchiveEntries*maxArchiveExtra
	return limits
}

func inputOf(path string, content []byte) runner.Input {
	return runner.Input{Path: path, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// outcome says why a phase came to nothing, or nil.
func (l *Layers) outcome(ctx context.Context, out *runner.Outcome, s *sink) error {
	if s.tooLarge || s.raised.Name == TooLarge || slices.ContainsFunc(out.Skipped, func(f runner.Skipped) bool { return strings.HasSuffix(f.Path, "/"+archiveFile) }) && s.err == nil {
		return tooLarge(l.options.MaxSize)
	}
	switch out.Status {
	case runner.StatusOK:
		return s.err
	case runner.StatusCancelled:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("dependencies: an installation was cancelled")
	case runner.StatusTimeout:
		return &Failure{TooSlow, fmt.Sprintf("the packages were not installed within %s", l.options.Timeout)}
	case runner.StatusOutOfMemory:
		return tooLarge(l.options.MaxSize)
	case runner.StatusOutputLimit:
		return &Failure{TooNoisy, fmt.Sprintf("the installer put out more than %d MiB of text", maxInstallerOutput>>20)}
	case runner.StatusKilled:
		return &Failure{Crashed, "the installer ended before it was done, as it does where the packages are too many for its sandbox"}
	case runner.StatusError:
		switch s.raised.Name {
		case Unresolvable:
			return &s.raised
		case unreachable:
			return cutOff(errUnreachable)
		}
	}
	return fmt.Errorf("dependencies: the installer ended with %s: %s: %s", out.Status, s.raised.Name, s.raised.Message)
}

// What an installed package can be called.
var (
	packageName    = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9@/._+~-]{0,213}$`)
	packageVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~:!-]{0,127}$`)
)

// decodePackages reads resolved.json.
func decodePackages(raw []byte) ([]environments.Package, error) {
	var list struct {
		Packages []environments.Package `json:"packages"`
	}
	if err := decodeStrictly(raw, &list); err != nil {
		return nil, fmt.Errorf("dependencies: resolved.json: %w", err)
	}
	if len(list.Packages) > maxPackages {
		return nil, fmt.Errorf("dependencies: resolved.json: there are %d packages", len(list.Packages))
	}
	for _, p := range list.Packages {
		if !packageName.MatchString(p.Name) || !packageVersion.MatchString(p.Version) {
			return nil, fmt.Errorf("dependencies: resolved.json: %q %q is no package", p.Name, p.Version)
		}
	}
	slices.SortFunc(list.Packages, func(a, b environments.Package) int {
		return strings.Compare(a.Name+" "+a.Version, b.Name+" "+b.Version)
	})
	return slices.Compact(list.Packages), nil
}
