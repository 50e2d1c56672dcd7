package adversarial

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout of a service, on a machine that runs other tests as well.
	startTimeout = 2 * time.Minute
	// endTimeout is above the service's own time to drain and close.
	endTimeout = 90 * time.Second
	// poolSize is how many sandboxes a service keeps warm: for the neighbour, for
	// the case and for the run after it.
	poolSize = 3
)

// Service is notebox serve as a process, with a folder of its own.
type Service struct {
	ID     string // --service-id
	Folder string // state/, files/, tmp/ and log
	URL    string
	PID    int

	cmd   *exec.Cmd
	ended chan error
}

// StartService starts the program below folder, on a free port, with these flags
// besides those that tests need, and these variables.
func StartService(program, folder, id string, flags map[string]string, env []string) (*Service, error) {
	s := &Service{ID: id, Folder: folder, ended: make(chan error, 1)}
	for _, sub := range []string{"state", "files", "tmp"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o700); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(s.Log())
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		"listen":      "127.0.0.1:0",
		"service-id":  id,
		"state-dir":   filepath.Join(folder, "state"),
		"storage":     "file://" + filepath.Join(folder, "files"),
		"pool-size":   fmt.Sprint(poolSize),
		"pool-max":    fmt.Sprint(poolSize), // so that their number is known
		"pool-by-use": "0",                  // likewise, whatever languages the requests ask for
		"max-running": "8",                  // more than any core count would give, so that none waits
		"drain":       "1s",
		"timeout":     defaultTimeout.String(),
	}
	maps.Copy(all, flags)
	args := []string{"serve"}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "--"+name+"="+strings.ReplaceAll(all[name], "{folder}", folder))
	}
	s.cmd = exec.Command(program, args...)
	s.cmd.Dir = folder // where it looks for .env
	s.cmd.Env = append(os.Environ(), append(env, "TMPDIR="+filepath.Join(folder, "tmp"))...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	s.PID = s.cmd.Process.Pid
	if s.URL, err = s.follow(stderr, log); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	return s, nil
}

// follow writes the service's log to a file and returns the address that it tells.
func (s *Service) follow(stderr io.Reader, log *os.File) (string, error) {
	found := make(chan string, 1)
	var once sync.Once
	go func() {
		defer log.Close()
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			_, _ = log.WriteString(line)
			if _, rest, ok := strings.Cut(line, "http://127.0.0.1:"); ok {
				port := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
				once.Do(func() { found <- "http://127.0.0.1:" + port })
			}
			if err != nil {
				break
			}
		}
		s.ended <- s.cmd.Wait()
	}()
	select {
	case url := <-found:
		return url, nil
	case err := <-s.ended:
		raw, _ := os.ReadFile(s.Log())
		return "", fmt.Errorf("it ended (%v): %s", err, raw)
	case <-time.After(startTimeout):
		_ = s.cmd.Process.Kill()
		return "", fmt.Errorf("it did not serve within %v", startTimeout)
	}
}

// Log is the file with what the service has written to standard error.
func (s *Service) Log() string { return filepath.Join(s.Folder, "log") }

// Stop ends the service as an operator would, and reports how that went.
func (s *Service) Stop(ctx context.Context) error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the service: %w", err)
	}
	select {
	case err := <-s.ended:
		return err
	case <-ctx.Done():
	case <-time.After(endTimeout):
	}
	_ = s.cmd.Process.Kill()
	return fmt.Errorf("the service did not end within %v", endTimeout)
}
