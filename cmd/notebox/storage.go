package main

import (
	"flag"
	"fmt"
	"time"

	"notebox/storage"
)

// storageSettings are the flags of how stored files are reached.
type storageSettings struct {
	serveFiles string
	keyAge     time.Duration
}

func (s *storageSettings) register(f *flag.FlagSet) {
	f.StringVar(&s.serveFiles, "serve-files", storage.ServeAuto, "who serves what links lead to: auto, the cloud where it can sign links, else this service; or proxy, this service always")
	f.DurationVar(&s.keyAge, "link-keys-age", storage.DefaultKeyAge, "after how long another secret signs links of this service")
}

func (s *storageSettings) check() error {
	if s.serveFiles != storage.ServeAuto && s.serveFiles != storage.ServeProxy {
		return fmt.Errorf("--serve-files is %s or %s", storage.ServeAuto, storage.ServeProxy)
	}
	if s.keyAge <= 0 {
		return fmt.Errorf("--link-keys-age is out of range")
	}
	return nil
}
