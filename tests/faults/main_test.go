package faults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// atOnce is how many of these tests go on at one time, whatever the cores: they
// wait much more than they work.
const atOnce = "12"

// suite is what the tests share.
var suite struct {
	folder  string // of everything that they make; short, as sockets are in it
	notebox string // the program
	standin string // see standin/main.go
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if err := openSuite(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := closeSuite(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: left behind after the tests:", err)
			return 1
		}
		return code
	}())
}

func openSuite() (err error) {
	if err = flag.Set("test.parallel", atOnce); err != nil {
		return err
	}
	if suite.folder, err = os.MkdirTemp("", "nbf"); err != nil {
		return err
	}
	suite.notebox, err = starter.Notebox()
	if err == nil {
		suite.standin, err = starter.Build(suite.folder, "notebox/tests/faults/standin")
	}
	return err
}

// closeSuite reports what is left of the tests' daemons.
func closeSuite() error {
	var left []string
	for _, p := range processesOf(suite.folder) {
		left = append(left, fmt.Sprintf("process %d: %s", p.pid, p.command))
	}
	for _, path := range mountsBelow(suite.folder) {
		left = append(left, "mounted: "+path)
	}
	left = append(left, cgroupsOf(filepath.Base(suite.folder))...)
	if len(left) > 0 {
		return fmt.Errorf("%s", strings.Join(left, "\n"))
	}
	return os.RemoveAll(suite.folder)
}

// needRoot ends a test that needs what the machine does not give: root for a daemon
// and a file system of its own. NOTEBOX_TEST_FAULTS=all makes a failure of that.
func needRoot(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("dockerd")
	if os.Geteuid() == 0 && err == nil {
		return
	}
	const why = "this needs root and dockerd, for a Docker daemon and disks of its own; " +
		"the nearest that goes without are the tests of runner/docker with a proxy before the daemon"
	require.NotEqual(t, "all", os.Getenv("NOTEBOX_TEST_FAULTS"), why)
	t.Skip(why)
}
