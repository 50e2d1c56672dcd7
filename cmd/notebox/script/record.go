package script

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"notebox/client"
	"notebox/record"
	"notebox/server/page"
)

// maxExecuted bounds the executed notebook that a page is made of, in bytes: a reply is
// bounded so, too.
const maxExecuted = 64 << 20

// saveRecord writes the run as a page of its own, if the caller wants one.
func (s *script) saveRecord(ctx context.Context, notebox *client.Client, run client.Run, r *client.Result) error {
	if s.HTML == "" {
		return nil
	}
	if err := s.record(ctx, notebox, run, r); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

func (s *script) record(ctx context.Context, notebox *client.Client, run client.Run, r *client.Result) error {
	if r.Notebook.URL == "" {
		return errors.New("the service could not store the notebook of which the page is made")
	}
	content, err := notebox.Open(ctx, r.Notebook.URL)
	if err != nil {
		return err
	}
	executed, err := content.All(maxExecuted)
	if err != nil {
		return err
	}
	of, err := record.New(executed, r.Raw, nil, record.Bounds{})
	if err != nil {
		return err
	}
	if err := s.describe(of, run); err != nil {
		return err
	}
	raw, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return writeRecord(s.HTML, of, raw)
}

// describe names the page by its file, and shows a program that is a file instead of the cell that
// runs it.
func (s *script) describe(of *record.Run, run client.Run) error {
	if s.Code == nil && s.Path != "-" {
		of.Title = filepath.Base(s.Path)
	}
	if run.Entrypoint == "" || len(of.Cells) != 1 {
		return nil
	}
	program, err := run.Files[len(run.Files)-1].Open()
	if err != nil {
		return err
	}
	defer program.Close()
	text, err := io.ReadAll(program)
	of.Cells[0].Text = strings.TrimRight(strings.ToValidUTF8(string(text), "\ufffd"), "\n")
	return err
}

func writeRecord(name string, of *record.Run, raw []byte) (err error) {
	pages, err := page.New()
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriter(file)
	err = pages.WriteRecord(w, page.Record{
		Title: of.Title, Run: bytes.NewReader(raw), Plots: of.Has(page.PlotlyType), Widgets: of.Has(page.WidgetType),
	})
	return errors.Join(err, w.Flush())
}
