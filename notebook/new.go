package notebook

import (
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Kernel names the kernel that a notebook asks for, as a Jupyter kernelspec does.
type Kernel struct {
	DisplayName string `json:"display_name"` // for people: "Python 3"
	Language    string `json:"language"`     // "python"
	Name        string `json:"name"`         // of the kernelspec: "python3"
}

// New returns a notebook (nbformat 4.5) of code cells for the kernel k. The
// same cells give the same bytes: the cell ids are "cell-0", "cell-1" and so on.
// Each source is kept byte for byte; one that is not valid UTF-8, which JSON
// cannot carry, is an *InvalidError, as are no cells and more than MaxCells.
func New(cells []string, k Kernel) ([]byte, error) {
	if len(cells) == 0 {
		return nil, invalid("cells", "must hold at least one cell")
	}
	if len(cells) > MaxCells {
		return nil, invalid("cells", "holds %d cells, the limit is %d", len(cells), MaxCells)
	}
	doc := document{
		Metadata:      metadata{Kernelspec: k},
		Nbformat:      4,
		NbformatMinor: 5,
	}
	for i, source := range cells {
		if !utf8.ValidString(source) {
			return nil, invalid(fmt.Sprintf("cells[%d]", i), "is not valid UTF-8")
		}
		doc.Cells = append(doc.Cells, codeCell{
			CellType: "code",
			ID:       cellID(i),
			Outputs:  []struct{}{},
			Source:   source,
		})
	}
	raw, err := json.Marshal(doc)
	if err != nil { // a kernelspec that is not UTF-8
		return nil, fmt.Errorf("notebook: new: %w", err)
	}
	return raw, nil
}

// document and what follows mirror nbformat's JSON schema, v4.5:
// https://github.com/jupyter/nbformat/blob/main/nbformat/v4/nbformat.v4.5.schema.json
type document struct {
	Cells         []codeCell `json:"cells"`
	Metadata      metadata   `json:"metadata"`
	Nbformat      int        `json:"nbformat"`
	NbformatMinor int        `json:"nbformat_minor"`
}

type codeCell struct {
	CellType       string     `json:"cell_type"`
	ExecutionCount *int       `json:"execution_count"`
	ID             string     `json:"id"`
	Metadata       struct{}   `json:"metadata"`
	Outputs        []struct{} `json:"outputs"`
	Source         string     `json:"source"`
}

type metadata struct {
	Kernelspec Kernel `json:"kernelspec"`
}

func cellID(i int) string { return fmt.Sprintf("cell-%d", i) }
