package doctor

import (
	"context"
	"errors"
	"fmt"

	"notebox/runner"
)

// Language is one that code may be in.
type Language struct {
	Environment runner.Environment
	// Limits of its sandboxes.
	Limits runner.Limits
	// Shown is its name for people.
	Shown string
	// Given is that --image names its image.
	Given bool
}

// Images are the checks of each language's image. The first language is the one that is
// needed; without the others notebox runs.
func Images(d Daemon, languages []Language) (all []Check) {
	seen := map[string]bool{}
	for i, l := range languages {
		if seen[l.Environment.Image] { // two languages share it
			continue
		}
		seen[l.Environment.Image] = true
		all = append(all, Check{Name: ImageName(l), Vital: i == 0, After: []string{NameEngine}, Look: func(ctx context.Context) Finding {
			return image(ctx, d, l, i == 0)
		}})
	}
	return all
}

// ImageName is the name of the check of a language's image.
func ImageName(l Language) string { return "image " + l.Environment.Name }

func image(ctx context.Context, d Daemon, l Language, needed bool) Finding {
	err := d.Ready(ctx, l.Environment)
	mend := "Build it: notebox image build " + l.Environment.Name + "."
	if l.Given {
		mend = fmt.Sprintf("--image names it: fetch it (docker pull %s), build it (notebox image build --tag %[1]s %s), or leave --image out.", l.Environment.Image, l.Environment.Name)
	}
	switch {
	case errors.Is(err, runner.ErrNoImage) && needed:
		return wrong(mend, "%s has no image %s: no code runs without it", l.Shown, l.Environment.Image)
	case errors.Is(err, runner.ErrNoImage):
		return warning(mend, "%s has no image %s, so code in it is refused", l.Shown, l.Environment.Image)
	case err != nil:
		return wrong("See the daemon's log: journalctl -u docker.", "the daemon does not tell of %s: %s", l.Environment.Image, words(err))
	}
	return ok("%s: %s", l.Shown, l.Environment.Image)
}
