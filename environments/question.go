package environments

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Question asks which images belong to this source, for the scripts that build them.
// `notebox image` puts it, and so does scripts/imageref, which compiles in a second, for
// scripts/image.sh.
type Question struct {
	Dir  string // folder with environments of the operator's own
	Base bool   // the image that the others are made from
	List bool   // the name of each environment that has an image of its own
}

// Register makes the question's parts flags.
func (q *Question) Register(f *flag.FlagSet) {
	f.StringVar(&q.Dir, "environments-dir", "", "Know the environments in this `folder` too.")
	f.BoolVar(&q.Base, "base", false, "Print the image that all others are made from.")
	f.BoolVar(&q.List, "list", false, "Print the name of each environment that has an image of its own.")
}

// Answer prints a line for each reference or name. The arguments are empty, or name one
// environment; without a name the answer is about the default one.
func (q Question) Answer(w io.Writer, args []string) error {
	all, err := Load(q.Dir)
	if err != nil {
		return err
	}
	switch {
	case q.Base:
		ref, err := BaseImage()
		if err == nil {
			_, err = fmt.Fprintln(w, ref)
		}
		return err
	case q.List:
		for _, e := range all {
			if e.ImageOf == "" {
				fmt.Fprintln(w, e.Name)
			}
		}
		return nil
	case len(args) > 1:
		return errors.New("one environment at a time")
	}
	name := Default
	if len(args) > 0 {
		name = args[0]
	}
	var known []string
	for _, e := range all {
		if e.Name == name {
			_, err := fmt.Fprintln(w, e.Image)
			return err
		}
		known = append(known, e.Name)
	}
	return fmt.Errorf("no environment %q; there is: %s", name, strings.Join(known, ", "))
}
