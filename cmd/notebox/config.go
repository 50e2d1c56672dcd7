package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"

	"github.com/peterbourgon/ff/v3"
)

// dotenv is the file of variables in the current folder.
const dotenv = ".env"

// variableOptions are the options of a command whose flags are also variables, NOTEBOX_… in the
// environment or in .env.
func variableOptions() []ff.Option {
	return []ff.Option{
		ff.WithEnvVarPrefix("NOTEBOX"),
		ff.WithConfigFile(dotenv),
		ff.WithAllowMissingConfigFile(true),
		ff.WithConfigFileParser(func(r io.Reader, set func(name, value string) error) error {
			if err := parseDotenv(r, set); err != nil {
				return fmt.Errorf("%s: %w", dotenv, err)
			}
			return nil
		}),
		ff.WithIgnoreUndefined(true), // .env holds other programs' variables too
	}
}

// readConfig sets the flags that the file of --config names and nobody has set yet.
func readConfig(flags *flag.FlagSet, name string) error {
	if err := ff.Parse(flags, nil, ff.WithConfigFile(name), ff.WithConfigFileParser(parseConfig)); err != nil {
		return fmt.Errorf("--config %s: %w", name, err)
	}
	return nil
}

// parseConfig reads lines as in .env. It refuses what signs in by a URL if others may read the
// file, as storage does with the secrets of links.
func parseConfig(r io.Reader, set func(name, value string) error) error {
	info, err := r.(fs.File).Stat() // ff opens it
	if err != nil {
		return err
	}
	return parseDotenv(r, func(name, value string) error {
		if _, found := hideSecrets(value); found && info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("the URL of %s has credentials in it, and others may read the file: chmod 600 it", name)
		}
		return set(name, value)
	})
}
