package dify

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"

	"notebox/executor"
	"notebox/executor/fetch"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/web"
	"notebox/storage"
)

// The fields of calls that errors of files are about.
const (
	pathField = "remote_path"
	urlField  = "file_url"
	nameField = "remote_filename"
)

// write makes or replaces a file.
func (b *sandbox) write(ctx context.Context, name, content string) error {
	if _, why := executor.CleanName(name); why != "" {
		return problem.Unfit(pathField, "%s", why)
	}
	leave, err := b.session.EnterFiles()
	if err != nil {
		return err
	}
	defer leave()
	_, _, err = b.session.WriteFile(ctx, name, strings.NewReader(content))
	return ofFile(pathField, err)
}

// fetch gets a URL, and writes it to name; with the name "" the file is named by its source.
// written is the name. The file goes by way of this service's disk, by the rules
// and within the bounds of files[].url.
func (b *sandbox) fetch(ctx context.Context, from, name string) (written string, err error) {
	s := b.of.server
	if _, err := fetch.Parse(from); err != nil {
		return "", problem.Unfit(urlField, "%s", err)
	}
	if name != "" {
		if _, why := executor.CleanName(name); why != "" {
			return "", problem.Unfit(nameField, "%s", why)
		}
	}
	leave, err := b.session.EnterFiles()
	if err != nil {
		return "", err
	}
	defer leave()
	work := s.Intake.Workspace(b.of.caller.Owner())
	defer work.Clear(ctx)
	in := &executor.Input{Field: "file", URL: from}
	if err := s.Executor.Fetch(ctx, in, b.session.DataSize(), work); err != nil {
		return "", ofFetch(err)
	}
	if name == "" {
		name = fetchedName(in)
	}
	file, err := os.Open(in.Path)
	if err != nil {
		return "", errors.Join(intake.ErrWorkspace, err)
	}
	defer file.Close()
	_, _, err = b.session.WriteFile(ctx, name, file)
	return name, ofFile(nameField, err)
}

// ofFetch tells an agent, and by it the operator, what opens a private host: the files
// of a Dify that runs beside this service are at one.
func ofFetch(err error) error {
	var p *problem.Error
	if !errors.As(err, &p) || p.Field == "" {
		return err
	}
	told := *p
	told.Field = urlField
	if p.Text == fetch.ErrAddress.Error() || p.Text == fetch.ErrHost.Error() {
		told.Text += "; if it is in a private network, the operator of this service can allow it with --fetch-allow"
	}
	return &told
}

// fetchedName is what a fetched file is called: by the server that had it, by its URL, or
// "file".
func fetchedName(in *executor.Input) string {
	for _, name := range []string{path.Base("/" + strings.ReplaceAll(in.Title, `\`, "/")), fetch.NameOf(in.URL)} {
		if clean, why := executor.CleanName(name); why == "" && !strings.Contains(clean, "/") {
			return clean
		}
	}
	return "file"
}

// link keeps a copy of a file and returns a URL that gives it, until it expires, to everyone
// who has the URL: the copy stands beside what a run leaves, and goes with its
// time.
func (b *sandbox) link(ctx context.Context, name string) (string, error) {
	s := b.of.server
	leave, err := b.session.EnterFiles()
	if err != nil {
		return "", err
	}
	defer leave()
	copyID, err := executor.NewID("run_", s.Now())
	if err != nil {
		return "", err
	}
	sandbox, title := b.session.Info().ID, path.Base(name)
	key, err := fileKey(copyID, sandbox, title)
	if err != nil {
		return "", err
	}
	if err := b.session.StoreFile(ctx, name, key); err != nil {
		return "", ofFile(pathField, err)
	}
	query, _, err := s.Store.Sign(key)
	if err != nil {
		return "", executor.WithoutKey(err, key)
	}
	query.Set(copyParam, copyID)
	address := url.URL{Path: FilesPrefix + sandbox + "/" + title}
	return s.Base(b.of.c.Request()) + address.EscapedPath() + "?" + query.Encode(), nil
}

// copyParam is the query parameter that says which copy of a file a link is to: each
// call of download_file makes one.
const copyParam = "copy"

// fileKey is the key of a copy. Its date is in the copy's id.
func fileKey(copyID, sandbox, title string) (string, error) {
	made, err := ulid.ParseStrict(strings.TrimPrefix(copyID, "run_"))
	if err != nil {
		return "", err
	}
	return storage.RunKey(ulid.Time(made.Time()), copyID, storage.KindFile, sandbox+"/"+title), nil
}

// serveFile answers GET /files/…: all of the address is in the key, and so signed.
func (s *handler) serveFile(c echo.Context) error {
	parts, ok := web.PathAfter(c.Request().URL, FilesPrefix)
	if !ok || len(parts) != 2 {
		return problem.NotFound()
	}
	key, err := fileKey(c.QueryParam(copyParam), parts[0], parts[1])
	if err != nil {
		return problem.Forbidden("this link is not valid: it was changed, or it is not of this service")
	}
	return s.ServeStored(c, key)
}

// ofFile gives what is wrong with a file of a session its face for a model. field is
// where the request names it.
func ofFile(field string, err error) error {
	var file *runner.FileError
	var p *problem.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p) && p.Field == "path":
		told := *p
		told.Field = field
		return &told
	case !errors.As(err, &file):
		return noSandbox(err)
	case file.Code == runner.FileNotFound:
		return &problem.Error{Status: http.StatusNotFound, Field: field, Text: "there is no such file in the sandbox"}
	}
	return executor.OfSessionFile(field, file)
}
