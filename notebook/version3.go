package notebook

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxHeading is the deepest heading that nbformat 3 has.
const maxHeading = 6

// upgrade makes nbformat 4.5 of a notebook of nbformat 3, as nbformat's own
// converter does, but for the outputs, which are left out: Adopt clears them.
// See https://github.com/jupyter/nbformat, nbformat/v4/convert.py.
func upgrade(doc object) (object, error) {
	meta, err := orEmpty("metadata", doc.get("metadata"))
	if err != nil {
		return nil, err
	}
	minor := doc.get("orig_nbformat_minor")
	if minor == nil {
		minor = jsontext.Value("0")
	}
	meta = meta.without("name", "signature").set("orig_nbformat", jsontext.Value("3")).set("orig_nbformat_minor", minor)
	cells := []byte{'['}
	err = cellsOf3(doc, exact, func(field string, value jsontext.Value) error {
		cell, err := readObject(field, value)
		if err != nil {
			return err
		}
		if cell, err = upgradeCell(field, cell); err != nil {
			return err
		}
		if len(cells) > 1 {
			cells = append(cells, ',')
		}
		cells = cell.appendTo(cells)
		return nil
	})
	if err != nil {
		return nil, invalidJSON("worksheets", err)
	}
	doc = doc.without("worksheets", "orig_nbformat", "orig_nbformat_minor").set("nbformat", jsontext.Value("4"))
	doc = doc.set("nbformat_minor", jsontext.Value("5")).set("metadata", meta.appendTo(nil))
	return doc.set("cells", append(cells, ']')), nil
}

// cellsOf3 calls fn for each cell of all worksheets. There may be MaxCells worksheets, and
// MaxCells cells in all. fn may return errStop.
func cellsOf3(doc object, opts []jsontext.Options, fn func(field string, cell jsontext.Value) error) error {
	sheets := doc.get("worksheets")
	if sheets == nil {
		return invalid("", "has no field worksheets")
	}
	count, stopped := 0, false
	return elements(sheets, opts, func(i int, sheet jsontext.Value) error {
		if i == MaxCells {
			return invalid("", "has more than %d worksheets", MaxCells)
		}
		field := fmt.Sprintf("worksheets[%d]", i)
		cells := lookup(sheet, "cells")
		if cells == nil {
			return invalid(field, "has no field cells")
		}
		err := elements(cells, opts, func(j int, cell jsontext.Value) error {
			if count++; count > MaxCells {
				return invalid("", "has more than %d cells", MaxCells)
			}
			err := fn(fmt.Sprintf("%s.cells[%d]", field, j), cell)
			stopped = errors.Is(err, errStop)
			return err
		})
		if err != nil {
			return invalidJSON(field+".cells", err)
		}
		if stopped {
			return errStop
		}
		return nil
	})
}

func upgradeCell(field string, cell object) (object, error) {
	switch kind, _ := unquote(cell.get("cell_type")); kind {
	case "code":
		meta, err := orEmpty(field+".metadata", cell.get("metadata"))
		if err != nil {
			return nil, err
		}
		if collapsed := cell.get("collapsed"); collapsed != nil {
			meta = meta.set("collapsed", collapsed)
		}
		source := cell.get("input")
		if source == nil {
			source = jsontext.Value(`""`)
		}
		if _, ok := multiline(source); !ok {
			return nil, invalid(field+".input", "must be a string or a list of strings")
		}
		cell = cell.without("language", "collapsed", "input", "prompt_number", "outputs")
		return cell.set("metadata", meta.appendTo(nil)).set("source", source), nil
	case "heading":
		level, err := strconv.Atoi(string(cell.get("level")))
		if err != nil || level < 1 || level > maxHeading {
			level = 1
		}
		source, _ := multiline(cell.get("source"))
		line := strings.Repeat("#", level) + " " + strings.Join(strings.FieldsFunc(source, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
		return cell.without("level").set("cell_type", jsontext.Value(`"markdown"`)).set("source", quote(nil, line)), nil
	case "html":
		return cell.set("cell_type", jsontext.Value(`"markdown"`)), nil
	}
	return cell, nil
}

// language3 is what the first code cell with a language has; "" if none has one.
func language3(raw []byte) (language string) {
	if string(lookup(raw, "nbformat")) != "3" {
		return ""
	}
	doc := object{{"worksheets", lookup(raw, "worksheets")}}
	_ = cellsOf3(doc, lenient, func(_ string, cell jsontext.Value) error {
		if kind, _ := unquote(lookup(cell, "cell_type")); kind == "code" {
			language, _ = unquote(lookup(cell, "language"))
		}
		if language != "" {
			return errStop
		}
		return nil
	})
	return language
}
