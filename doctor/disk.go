package doctor

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is a folder that something grows in.
type Place struct {
	Of, Folder string
	// Low is what is little free space for it, in bytes; 0: that is fullBelow.
	Low int64
}

const (
	// fullBelow is the free space that a run's files need, in bytes: 512 MiB come back, by
	// default, and its records.
	fullBelow = 1 << 30
	// lowForImages is what building Python's image needs, with all that is downloaded.
	lowForImages = 8 << 30
	// fewInodes is what a set of packages has as files, and more.
	fewInodes = 50_000
)

// Disk is the check of the free space in folders of this host, and in that of the daemon's
// images. Folders that are not there count by what is above them; a folder of "" is of another
// host, and is passed over.
func Disk(d Daemon, places ...Place) Check {
	return Check{Name: "disk", Look: func(ctx context.Context) Finding {
		all := append([]Place(nil), places...)
		elsewhere := ""
		if about, err := d.About(ctx); err == nil {
			if onThisHost(about) {
				all = append(all, Place{Of: "the daemon's images", Folder: about.Folder, Low: lowForImages})
			} else {
				elsewhere = "; the daemon's images are on another machine, whose disk is not seen from here"
			}
		}
		var seen []space
		for _, p := range all {
			if p.Folder == "" {
				continue
			}
			one := space{place: p}
			one.err = unix.Statfs(nearest(p.Folder), &one.Statfs_t)
			seen = append(seen, one)
		}
		f := judge(seen)
		f.Message += elsewhere
		return f
	}}
}

// space is what a file system says of the room in a place.
type space struct {
	place Place
	unix.Statfs_t
	err error
}

// free is in bytes, for who is not root.
func (s space) free() int64 {
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // its types differ by system
}

// judge finds the worst. Places on one disk are told of together.
func judge(all []space) Finding {
	var full, low, fine []string
	for i, s := range all {
		of := s.place.Of + " (" + s.place.Folder + ")"
		for j, other := range all {
			if other.err == nil && s.err == nil && other.Fsid == s.Fsid && other.Blocks == s.Blocks {
				if j < i {
					of = ""
					break
				}
				if j > i {
					of += ", " + other.place.Of + " (" + other.place.Folder + ")"
				}
			}
		}
		text := fmt.Sprintf("%s free for %s", bytesOf(s.free()), of)
		switch {
		case s.err != nil:
			low = append(low, fmt.Sprintf("the free space for %s cannot be seen: %s", of, words(s.err)))
		case s.free() < fullBelow:
			full = append(full, fmt.Sprintf("%s free for %s (%s)", bytesOf(s.free()), s.place.Of, s.place.Folder))
		case s.free() < s.place.Low:
			low = append(low, fmt.Sprintf("%s free for %s (%s): building an image takes up to %s", bytesOf(s.free()), s.place.Of, s.place.Folder, bytesOf(s.place.Low)))
		case s.Files > 0 && s.Ffree < fewInodes: // some file systems have no number of them
			low = append(low, fmt.Sprintf("%d files can be added for %s (%s)", s.Ffree, s.place.Of, s.place.Folder))
		case of != "":
			fine = append(fine, text)
		}
	}
	const mend = "Remove what is not needed (notebox image prune, docker system prune, a shorter --retention), or move it to a larger disk."
	switch {
	case len(full) > 0:
		return wrong(mend, "%s", strings.Join(append(full, low...), "; "))
	case len(low) > 0:
		return warning(mend, "%s", strings.Join(low, "; "))
	}
	return ok("%s", strings.Join(fine, "; "))
}
