package doctor

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"notebox/access"
)

// Keys is the check of the file of API keys. path may be "": there are none then, and only
// this machine is let in unless everybody is. waits is that the service starts without a key and
// waits for the first one.
func Keys(path string, everybody, waits bool) Check {
	return Check{Name: "keys", Look: func(context.Context) Finding {
		switch {
		case path == "" && everybody:
			return warning("Make a key (notebox key -file keys NAME) and set --api-keys-file.", "--no-auth: whoever reaches the service may run code")
		case path == "":
			return ok("no API keys: only this machine is served")
		}
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		keys, err := access.Open(path, access.Options{Log: log})
		if errors.Is(err, access.ErrNoKey) || errors.Is(err, fs.ErrNotExist) {
			if waits {
				return firstKey(path)
			}
			return wrong("Make a key: notebox key -file "+path+" NAME", "nobody can call: %s", words(err))
		}
		if err != nil {
			return wrong("Mend the file; notebox key -file writes its lines.", "%s", words(err))
		}
		n := keys.Len()
		if err := keys.Close(); err != nil {
			return wrong("Mend the file; notebox key -file writes its lines.", "%s", words(err))
		}
		if said.Len() > 0 {
			return warning("chmod 600 "+path, "others may read %s; callers in it: %d", path, n)
		}
		return ok("callers in %s: %d", path, n)
	}}
}

// firstKey is the finding of a file that the first key is yet to come to.
func firstKey(path string) Finding {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return wrong("Make the folder, which notebox serve does not.", "--first-key waits for a key in %s, and there is no folder %s", path, folder)
	}
	return warning("Make a key: notebox key -file "+path+" NAME", "no API key yet: by --first-key notebox serve starts, and lets nobody in until there is one")
}
