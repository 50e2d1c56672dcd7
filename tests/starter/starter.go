// Package starter builds and starts the real program, for tests and for the benchmark.
//
//  1. Build compiles a program of this module.
//  2. Launch starts "notebox serve" as a process, on a free port of loopback, with a folder
//     of its own for its state, its files and its log. It reads neither the caller's
//     NOTEBOX_ variables nor a .env file.
//  3. Await reads the log until the process says where it serves. Whether it can run code
//     is another question, which /readyz answers.
//  4. Stop ends it as an operator would, by SIGTERM.
package starter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout is for a machine that runs other tests as well.
	startTimeout = 2 * time.Minute
	// stopTimeout is above the service's own time to drain and close.
	stopTimeout = 90 * time.Second
	// lookEvery is how often the log is read for the address.
	lookEvery = 10 * time.Millisecond
	// maxWords is how much of the log's end an error quotes, in bytes.
	maxWords = 4000
)

// Build compiles the command of an import path, "notebox/cmd/notebox", into folder. It
// returns the program's path there. The program is linked statically.
func Build(folder, importPath string) (string, error) {
	program := filepath.Join(folder, path.Base(importPath))
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, importPath)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", importPath, err, out)
	}
	return program, nil
}

// Notebox compiles the program. It is linked once for all packages of tests: all have it
// in one place, where go build finds that it is up to date.
var Notebox = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("where the module is: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(out)), "bin", "tests")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	return Build(folder, "notebox/cmd/notebox")
})

// Options say what to start.
type Options struct {
	Program string   // its path: see Build
	ID      string   // of the service
	Folder  string   // for state, files and log; it is made if it is missing
	Flags   []string // of "notebox serve"; they win over those that Launch sets
	Env     []string // more variables, "NAME=value"

	// Etc are files that the process sees in /etc in place of the machine's, by their name
	// there. They need root, or a machine where anybody may have a user namespace.
	Etc map[string]string
}

// command starts the program with the files of Etc. They are in Folder, and over those of
// /etc in a mount namespace of the process.
func (o *Options) command(program string, args []string) (*exec.Cmd, error) {
	if len(o.Etc) == 0 {
		return exec.Command(program, args...), nil
	}
	script := ""
	for name, content := range o.Etc {
		file := filepath.Join(o.Folder, name)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return nil, err
		}
		script += fmt.Sprintf("mount --bind '%s' '/etc/%s' && ", file, name)
	}
	view := []string{"--mount"}
	if os.Geteuid() != 0 {
		view = append(view, "--user", "--map-root-user")
	}
	return exec.Command("unshare", slices.Concat(view, []string{"sh", "-c", script + `exec "$@"`, "sh", program}, args)...), nil
}

// Process is a service that was launched.
type Process struct {
	ID     string
	Folder string
	URL    string // where it serves; set by Await

	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of its end; may be read when ended is closed
}

// Start launches a service and waits until it serves.
func Start(ctx context.Context, o Options) (*Process, error) {
	p, err := Launch(o)
	if err != nil {
		return nil, err
	}
	return p, p.Await(ctx)
}

// Launch starts a service, and does not wait for it.
func Launch(o Options) (*Process, error) {
	program, err := filepath.Abs(o.Program)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Folder, 0o755); err != nil {
		return nil, err
	}
	cmd, err := o.command(program, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--service-id", o.ID,
		"--languages-ahead=false", // which costs time, and few tests need
		"--state-dir", filepath.Join(o.Folder, "state"), "--storage", "file://" + filepath.ToSlash(filepath.Join(o.Folder, "files")),
	}, slices.Concat(isolation(), o.Flags)...))
	if err != nil {
		return nil, err
	}
	cmd.Dir = o.Folder
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NOTEBOX_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, o.Env...)
	p, err := Run(cmd, o.Folder)
	if err == nil {
		p.ID = o.ID
	}
	return p, err
}

// isolation is the kind of sandboxes that NOTEBOX_TEST_ISOLATION names, if it is not to be what a
// service has that is not told.
func isolation() []string {
	if kind := os.Getenv("NOTEBOX_TEST_ISOLATION"); kind != "" {
		return []string{"--isolation", kind}
	}
	return nil
}

// Run starts a command that becomes a service, with its log in folder. It does not wait
// for it.
func Run(cmd *exec.Cmd, folder string) (*Process, error) {
	p := &Process{Folder: folder, cmd: cmd, ended: make(chan struct{})}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(p.Log())
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// serves is the line of the log, as text or JSON, that says where the service is.
var serves = regexp.MustCompile(`notebox serves.*?url\W+(http://[^\s"]+)`)

// Await returns when the service serves. One that does not is ended.
func (p *Process) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it does not serve after %s", startTimeout))
	defer cancel()
	for {
		over := p.Over() // before the log is read
		if found := serves.FindStringSubmatch(p.Logged()); found != nil {
			p.URL = found[1]
			return nil
		}
		if over {
			return fmt.Errorf("the service did not start: %v\n%s", p.err, p.lastWords())
		}
		select {
		case <-p.ended:
		case <-time.After(lookEvery):
		case <-ctx.Done():
			err := fmt.Errorf("the service did not start: %w\n%s", context.Cause(ctx), p.lastWords())
			return errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
		}
	}
}

// Stop ends the service as an operator would. It kills one that does not end until ctx
// ends, or in a time that is enough for every service; that is an error, as is an end
// other than a good one.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.Signal(syscall.SIGCONT) // a test may have stopped it
	_ = p.Signal(syscall.SIGTERM) // it may have ended by itself
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, fmt.Errorf("it did not end within %s", stopTimeout))
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("the service was killed: %w\n%s", context.Cause(ctx), p.lastWords())
	}
	if p.err != nil {
		return fmt.Errorf("the service: %w\n%s", p.err, p.lastWords())
	}
	return nil
}

// Kill ends the service without a word, and waits for that.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// ExitCode is that of a process that has ended.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Stored is the folder with the files that runs have left.
func (p *Process) Stored() string { return filepath.Join(p.Folder, "files") }

// Log is the path of what the process has written to standard error.
func (p *Process) Log() string { return filepath.Join(p.Folder, "log") }

// Logged is what the process has written to standard error.
func (p *Process) Logged() string {
	raw, _ := os.ReadFile(p.Log())
	return string(raw)
}

func (p *Process) lastWords() string {
	all := p.Logged()
	return all[max(0, len(all)-maxWords):]
}
