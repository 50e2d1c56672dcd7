package notebook

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Adopt returns a caller's own notebook (nbformat 4) made ready to run on the
// kernel k: outputs and execution counts of its code cells are cleared, its
// kernelspec is replaced, ids are added to cells that lack one (from nbformat
// 4.5 on), and so are the metadata and outputs that nbformat requires. All else
// is kept byte for byte. A notebook without nbformat_minor is taken as 4.5, and one
// of nbformat 3 is made one of 4.5 before.
//
// What is not such a notebook, holds no code cell or more than MaxCells cells,
// nests deeper than MaxDepth, or is not exact Unicode, is an *InvalidError.
// Whether k is the right kernel for it is the caller's to say; see Language.
func Adopt(raw []byte, k Kernel) ([]byte, error) {
	if Depth(raw) > MaxDepth {
		return nil, invalid("", "nests deeper than %d levels", MaxDepth)
	}
	doc, err := readObject("", raw)
	if err != nil {
		return nil, err
	}
	if string(doc.get("nbformat")) == "3" { // as IPython wrote it until 2015
		if doc, err = upgrade(doc); err != nil {
			return nil, err
		}
	}
	minor, err := version(doc)
	if err != nil {
		return nil, err
	}
	meta, err := adoptMetadata(doc.get("metadata"), k)
	if err != nil {
		return nil, err
	}
	cells, err := adoptCells(doc.get("cells"), minor)
	if err != nil {
		return nil, err
	}
	doc = doc.set("cells", cells)
	doc = doc.set("metadata", meta)
	doc = doc.set("nbformat_minor", strconv.AppendInt(nil, int64(minor), 10))
	return doc.appendTo(make([]byte, 0, len(raw)+1024)), nil
}

// version returns nbformat_minor.
func version(doc object) (int, error) {
	major := doc.get("nbformat")
	if major == nil {
		return 0, invalid("", "has no field nbformat")
	}
	if string(major) != "4" {
		return 0, invalid("nbformat", "is %s, want 4 or 3", clip(string(major)))
	}
	raw := doc.get("nbformat_minor")
	if raw == nil {
		return 5, nil
	}
	minor, err := strconv.Atoi(string(raw))
	if err != nil || minor < 0 {
		return 0, invalid("nbformat_minor", "is %s, want a whole number", clip(string(raw)))
	}
	return minor, nil
}

func adoptMetadata(raw jsontext.Value, k Kernel) (jsontext.Value, error) {
	meta, err := orEmpty("metadata", raw)
	if err != nil {
		return nil, err
	}
	spec, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("notebook: adopt: %w", err)
	}
	return meta.set("kernelspec", spec).appendTo(nil), nil
}

func adoptCells(raw jsontext.Value, minor int) (jsontext.Value, error) {
	if raw == nil {
		return nil, invalid("", "has no field cells")
	}
	var cells []object
	code, ids := 0, map[string]bool{}
	err := elements(raw, exact, func(i int, value jsontext.Value) error {
		if i == MaxCells {
			return invalid("cells", "holds more than %d cells", MaxCells)
		}
		cell, kind, err := adoptCell(fmt.Sprintf("cells[%d]", i), value)
		if err != nil {
			return err
		}
		if kind == "code" {
			code++
		}
		if id, ok := unquote(cell.get("id")); ok {
			ids[id] = true
		}
		cells = append(cells, cell)
		return nil
	})
	if err != nil {
		return nil, invalidJSON("cells", err)
	}
	if code == 0 {
		return nil, invalid("cells", "holds no code cell")
	}
	out := make([]byte, 1, len(raw)+64*len(cells))
	out[0] = '['
	for i, cell := range cells {
		if minor >= 5 && cell.get("id") == nil {
			cell = cell.set("id", quote(nil, freeID(i, ids)))
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = cell.appendTo(out)
	}
	return append(out, ']'), nil
}

// adoptCell checks one cell and clears what an earlier run left in it.
func adoptCell(field string, raw jsontext.Value) (cell object, kind string, err error) {
	if cell, err = readObject(field, raw); err != nil {
		return nil, "", err
	}
	kind, _ = unquote(cell.get("cell_type"))
	if kind != "code" && kind != "markdown" && kind != "raw" {
		return nil, "", invalid(field+".cell_type", "must be code, markdown or raw")
	}
	if _, ok := multiline(cell.get("source")); !ok {
		return nil, "", invalid(field+".source", "must be a string or a list of strings")
	}
	if id, ok := unquote(cell.get("id")); cell.get("id") != nil && (!ok || !idPattern.MatchString(id)) {
		return nil, "", invalid(field+".id", "must be 1 to 64 letters, digits, - and _")
	}
	meta, err := orEmpty(field+".metadata", cell.get("metadata"))
	if err != nil {
		return nil, "", err
	}
	if tags := meta.get("tags"); tags != nil {
		if _, ok := multiline(tags); !ok || tags.Kind() != '[' {
			return nil, "", invalid(field+".metadata.tags", "must be a list of strings")
		}
	}
	if err := checkAttachments(field+".attachments", cell.get("attachments")); err != nil {
		return nil, "", err
	}
	cell = cell.set("metadata", meta.appendTo(nil))
	if kind == "code" {
		cell = cell.set("execution_count", jsontext.Value("null"))
		cell = cell.set("outputs", jsontext.Value("[]"))
	}
	return cell, kind, nil
}

// checkAttachments accepts what nbformat does: names with a MIME bundle each.
func checkAttachments(field string, raw jsontext.Value) error {
	if raw == nil {
		return nil
	}
	all, err := readObject(field, raw)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.value.Kind() != '{' {
			return invalid(field, "must hold a MIME bundle for each name")
		}
	}
	return nil
}

// orEmpty reads an object that nbformat requires and people leave out.
func orEmpty(field string, raw jsontext.Value) (object, error) {
	if raw == nil {
		return object{}, nil
	}
	return readObject(field, raw)
}

// idPattern is the schema's, since nbformat 4.5.
var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// freeID returns an id for cell i that is not in ids, and adds it.
func freeID(i int, ids map[string]bool) string {
	id := cellID(i)
	for n := 0; ids[id]; n++ {
		id = fmt.Sprintf("%s-%d", cellID(i), n)
	}
	ids[id] = true
	return id
}

// Language returns the language that the notebook raw is written in, as its
// kernelspec says or, failing that, its language_info or, in nbformat 3, its first
// code cell; "" if it says nothing or is not a notebook.
func Language(raw []byte) string {
	meta := lookup(raw, "metadata")
	for _, path := range [][2]string{{"kernelspec", "language"}, {"language_info", "name"}} {
		if language, ok := unquote(lookup(lookup(meta, path[0]), path[1])); ok && language != "" {
			return language
		}
	}
	return language3(raw)
}

// lookup returns the value of name in the object raw, nil if there is none.
// As in Python, the last of two wins.
func lookup(raw jsontext.Value, name string) jsontext.Value {
	var found jsontext.Value
	err := members(raw, lenient, func(n string, value jsontext.Value) error {
		if n == name {
			found = value
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return found
}
