package adversarial

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Load reads every case of a folder, in the order of their ids. A field that is
// not known is an error, as is a case that expects nothing.
func Load(folder fs.FS) ([]Case, error) {
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list cases: %w", err)
	}
	var all []Case
	for _, name := range names {
		raw, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("read a case: %w", err)
		}
		var c Case
		if err := yaml.Load(raw, &c, yaml.WithKnownFields()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.valid(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Case) int { return CompareIDs(a.ID, b.ID) })
	for i := range all[:max(0, len(all)-1)] {
		if all[i].ID == all[i+1].ID {
			return nil, fmt.Errorf("two cases have the id %s", all[i].ID)
		}
	}
	return all, nil
}

// CompareIDs orders A2 before A10.
func CompareIDs(a, b string) int {
	if len(a) != len(b) && a != "" && b != "" && a[0] == b[0] {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func (c *Case) valid(file string) error {
	switch {
	case c.ID == "" || !strings.HasPrefix(path.Base(file), c.ID+"-"):
		return fmt.Errorf("its id %q is not what the file's name begins with", c.ID)
	case c.Title == "" || c.Source == "":
		return errors.New("it needs a title and a source")
	case c.Here != nil && (c.Here.Cannot == "" || c.Here.Nearest == ""):
		return errors.New("here needs both cannot and nearest")
	}
	if len(c.attempts()) == 0 {
		return errors.New("it sends nothing")
	}
	seen := map[string]bool{}
	for _, v := range c.attempts() {
		if seen[v.Name] {
			return fmt.Errorf("two variants are called %q", v.Name)
		}
		seen[v.Name] = true
		if err := v.valid(); err != nil {
			return fmt.Errorf("variant %q: %w", v.Name, err)
		}
	}
	return nil
}

// attempts are the case itself, if it has requests, and its variants.
func (c *Case) attempts() []Variant {
	if len(c.Requests) == 0 && c.Check == "" {
		return c.Variants
	}
	return append([]Variant{{Attempt: c.Attempt}}, c.Variants...)
}

func (v *Variant) valid() error {
	if len(v.Requests) == 0 && v.Check == "" {
		return errors.New("it sends nothing")
	}
	for i, r := range v.Requests {
		forms := 0
		for _, given := range []bool{r.Code != "", r.Cells != nil, r.Raw != nil, r.Base64 != "", r.Generate != nil} {
			if given {
				forms++
			}
		}
		if forms > 1 {
			return fmt.Errorf("request %d has several bodies", i)
		}
		if err := r.Expect.valid(r.ofRun()); err != nil && v.Check == "" {
			return fmt.Errorf("request %d: %w", i, err)
		}
	}
	return nil
}
