package runnertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"notebox/runner"
)

// Notebook returns an nbformat 4 document with these code cells.
func Notebook(cells ...string) []byte {
	type cell map[string]any
	doc := map[string]any{
		"nbformat": 4, "nbformat_minor": 5,
		"metadata": map[string]any{"kernelspec": map[string]any{"name": "python3", "display_name": "Python 3"}},
	}
	list := make([]cell, 0, len(cells))
	for i, source := range cells {
		list = append(list, cell{
			"cell_type": "code", "id": fmt.Sprintf("cell-%d", i), "source": source,
			"metadata": cell{}, "outputs": []any{}, "execution_count": nil,
		})
	}
	doc["cells"] = list
	raw, err := json.Marshal(doc)
	if err != nil {
		panic(err) // strings always marshal
	}
	return raw
}

// Executed is what tests look at in an executed notebook.
type Executed struct {
	Cells []struct {
		Outputs []Output `json:"outputs"`
	} `json:"cells"`
}

// Output is what tests look at in an output.
type Output struct {
	Type string         `json:"output_type"`
	Name string         `json:"name"`
	Text Text           `json:"text"`
	Data map[string]any `json:"data"`
	// Ename is the class of an error.
	Ename string `json:"ename"`
}

// Text is nbformat's multi-line string: a string, or a list of them.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(raw []byte) error {
	var lines []string
	if json.Unmarshal(raw, &lines) == nil {
		*t = Text(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// Stdout returns the text that cell number i has written.
func (e Executed) Stdout(i int) string {
	var b strings.Builder
	for _, o := range e.Cells[i].Outputs {
		if o.Name == "stdout" {
			b.WriteString(string(o.Text))
		}
	}
	return b.String()
}

// Errors returns the classes of the exceptions that ended cells, in order.
func (e Executed) Errors() (names []string) {
	for _, c := range e.Cells {
		for _, o := range c.Outputs {
			if o.Type == "error" {
				names = append(names, o.Ename)
			}
		}
	}
	return names
}

// ParseExecuted reads the notebook of an outcome.
func ParseExecuted(out *runner.Outcome) (e Executed, err error) {
	return e, json.Unmarshal(out.Notebook, &e)
}

// StreamedText returns the stdout that came out as events, of all cells.
func StreamedText(events []runner.Event) (string, error) {
	var b strings.Builder
	for _, e := range events {
		if e.Kind != runner.EventOutput {
			continue
		}
		var o Output
		if err := json.Unmarshal(e.Output, &o); err != nil {
			return "", err
		}
		if o.Name == "stdout" {
			b.WriteString(string(o.Text))
		}
	}
	return b.String(), nil
}
