package adversarial

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"notebox/tests/starter"
)

// The cases run the real program with real containers: they need a Docker daemon
// on this machine and the sandbox image, which `make test` brings.

// planted is what the tests share: the program, and secrets for code to find.
var planted struct {
	folder  string
	program string
	canary  Canary
	env     []string // of the services: a secret
	beside  string   // a secret for a file beside each
}

// hostFile holds a secret in the daemon host's /etc while the tests run.
var hostFile = "/etc/notebox-" + strings.ToLower(rand.Text())

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		err := errors.Join(flag.Set("test.parallel", groupsThere), plant())
		defer func() { _ = os.Remove(hostFile) }()
		if err != nil {
			fmt.Fprintln(os.Stderr, "run `make test`, which brings what the tests need:", err)
			return 1
		}
		defer os.RemoveAll(planted.folder)
		return m.Run()
	}())
}

// plant builds the program and hides the secrets.
func plant() (err error) {
	if planted.folder, err = os.MkdirTemp("", "notebox-adversarial-"); err != nil {
		return err
	}
	if planted.program, err = starter.Notebox(); err != nil {
		return err
	}
	planted.env = []string{"CANARY_SECRET=" + planted.canary.Secret("the service's environment")}
	planted.beside = planted.canary.Secret("the state folder")
	err = os.WriteFile(hostFile, []byte(planted.canary.Secret("the host's /etc")), 0o600)
	if errors.Is(err, os.ErrPermission) {
		fmt.Println("the secret in the host's /etc is not planted: only root can")
		return nil
	}
	return err
}
