package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"notebox/agent/remote"
	"notebox/agent/tool"
	"notebox/client"
)

// elsewhereTime is how long a start waits for a notebox elsewhere to answer.
const elsewhereTime = 10 * time.Second

// elsewhere is a notebox that runs elsewhere, as the flags of its caller say.
type elsewhere struct{ url, key string }

func (e *elsewhere) register(f *flag.FlagSet) {
	f.StringVar(&e.url, "url", "http://127.0.0.1:8080", "Find notebox at this `URL`.")
	f.StringVar(&e.key, "api-key", "", "Show this API `key` to notebox; a variable hides it from the list of processes.")
}

// fromVariables takes what the environment says, unless a flag does. A file .env is not read: the
// folder may be a stranger's.
func (e *elsewhere) fromVariables() {
	e.url, e.key = cmp.Or(os.Getenv("NOTEBOX_URL"), e.url), os.Getenv("NOTEBOX_API_KEY")
}

// parse checks the URL.
func (e *elsewhere) parse() (*url.URL, error) {
	u, err := url.Parse(e.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("-url %q: it must be http(s)://host, with a path or none", e.url)
	}
	return u, nil
}

// reach asks notebox what it has, or says what to do. silent words the error of one that does
// not answer.
func (e *elsewhere) reach(ctx context.Context, silent func(error) error) (n remote.Notebox, about tool.About, sessions bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	n = remote.New(client.Options{BaseURL: e.url, Key: e.key})
	about, sessions, err = n.About(ctx, "python")
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		err = fmt.Errorf("notebox at %s wants an API key: set -api-key or NOTEBOX_API_KEY", e.url)
	case err != nil && !errors.As(err, &refused):
		err = silent(err)
	}
	return n, about, sessions, err
}
