package main

import (
	"errors"
	"fmt"
	"math"

	"notebox/runner/docker"
)

// userRange is a flag: the ids that sandboxes have, FIRST-LAST.
type userRange docker.Users

// The image's own ids, none of which a sandbox may have.
const (
	lastOfImage = 999   // of its services
	nobody      = 65534 // and the next is no id at all
)

func (u *userRange) String() string {
	if *u == (userRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", u.First, u.Last)
}

func (u *userRange) Set(text string) error {
	var r userRange
	if n, err := fmt.Sscanf(text, "%d-%d", &r.First, &r.Last); err != nil || n != 2 || r.String() != text {
		return errors.New("not FIRST-LAST")
	}
	switch {
	case r.First <= lastOfImage || r.Last > math.MaxInt32:
		return fmt.Errorf("not from %d to %d", lastOfImage+1, math.MaxInt32)
	case docker.Users(r).Room() < 1:
		return errors.New("less than two ids")
	case r.First <= nobody+1 && nobody <= r.Last:
		return fmt.Errorf("%d is nobody's, and %d no id", nobody, nobody+1)
	}
	*u = r
	return nil
}
