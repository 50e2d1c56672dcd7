package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"notebox/runner/docker"
	"notebox/tests/starter"
)

// serviceID is of the service that a package's tests share. The others have ids that begin
// with it: a service removes what carries its own id when it starts.
var serviceID = fmt.Sprintf("test-%d", os.Getpid())

// ID is the id of another service of these tests.
func ID(name string) string { return serviceID + "-" + name }

// Main runs the tests of a package with a service that they share, and returns the exit
// status. withoutContainers are the tests that -short has, which is how make check calls
// them: a regular expression.
func Main(m *testing.M, shared *Service, withoutContainers string) int {
	flag.Parse()
	if testing.Short() {
		if err := flag.Set("test.run", withoutContainers); err != nil {
			panic(err)
		}
		return m.Run()
	}
	if err := shared.open(); err != nil {
		fmt.Fprintln(os.Stderr, "run `make test`, which brings what the tests need:", err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		shared.printErrors()
	}
	if err := shared.shut(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: left behind after the tests:", err)
		return 1
	}
	return code
}

func (s *Service) open() error {
	folder, err := os.MkdirTemp("", "notebox-test-")
	if err != nil {
		return err
	}
	s.Process, err = Options{Folder: folder}.launch(serviceID)
	if err != nil {
		return err
	}
	return s.Await(context.Background())
}

// shut ends the shared service and reports what it, or another, did not clean up.
func (s *Service) shut() error {
	if err := s.Stop(context.Background()); err != nil {
		return err
	}
	engine, err := docker.New(docker.Options{ServiceID: serviceID, Log: slog.Default()})
	if err != nil {
		return err
	}
	if err := errors.Join(RemoveLayers(engine.Images()), engine.Close(context.Background())); err != nil {
		return fmt.Errorf("layers: %w", err)
	}
	out, err := exec.Command("docker", "ps", "-a", "--filter", "label=notebox.service", "--format", `{{.Label "notebox.service"}} {{.Names}} {{.Status}}`).Output()
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		if id, _, _ := strings.Cut(line, " "); id == serviceID || strings.HasPrefix(id, serviceID+"-") {
			return fmt.Errorf("containers: %s", out)
		}
	}
	uploads, err := os.ReadDir(s.Folder + "/state/uploads")
	if err != nil || len(uploads) > 0 {
		return fmt.Errorf("uploads: %v, %v", uploads, err)
	}
	return os.RemoveAll(s.Folder)
}

// RemoveLayers takes the images away that a service has kept of packages.
func RemoveLayers(images *docker.Images) error {
	all, err := images.List(context.Background())
	for _, image := range all {
		for _, name := range image.Names {
			if name != image.Layer {
				err = errors.Join(err, images.Forget(context.Background(), name))
			}
		}
		if image.Layer != "" {
			err = errors.Join(err, images.Remove(context.Background(), image))
		}
	}
	return err
}

// Containers are the names of those that a service has.
func Containers(t testing.TB, id string) []string {
	t.Helper()
	names, err := starter.Containers(context.Background(), id, "{{.Names}}")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// SandboxNames are the names of what its runs and sessions have; see starter.Sandboxes.
func SandboxNames(t testing.TB, id string) []string {
	t.Helper()
	names, err := starter.Sandboxes(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
