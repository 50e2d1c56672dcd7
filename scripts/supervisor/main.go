// Command supervisor compiles the supervisor of cells for each processor, into
// environments/supervisor/built or, with -o, for one into a file. Called in the folder of the
// checkout.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"notebox/environments"
)

const built = "environments/supervisor/built"

func main() {
	log.SetFlags(0)
	log.SetPrefix("supervisor: ")
	out := flag.String("o", "", "Write the program, for -arch, to this `file`.")
	arch := flag.String("arch", "amd64", "Compile for this `processor`.")
	flag.Parse()
	if err := run(*out, *arch); err != nil {
		log.Fatal(err)
	}
}

func run(out, arch string) error {
	if out != "" {
		return compile(out, arch)
	}
	old, err := filepath.Glob(built + "/*.gz")
	if err != nil {
		return err
	}
	for _, arch := range environments.SupervisorArchs() {
		name, err := environments.SupervisorFile(arch)
		if err != nil {
			return err
		}
		file := filepath.Join(built, name)
		if i := slices.Index(old, file); i >= 0 {
			old = slices.Delete(old, i, i+1)
			continue
		}
		if err := pack(arch, file); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	for _, file := range old { // of other sources
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// compile has flags that leave out of the program where and when it was compiled.
func compile(out, arch string) error {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", out, "./environments/supervisor")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func pack(arch, to string) error {
	folder, err := os.MkdirTemp("", "supervisor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "supervisor")
	if err := compile(file, arch); err != nil {
		return err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(raw); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}
