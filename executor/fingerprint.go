package executor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"notebox/executor/intake"
)

// fingerprint tells whether two requests mean the same: by what they ask for, not by
// their bytes, which a protocol may write in many ways. It holds nothing that a
// restart with other settings would change, such as a default.
func fingerprint(o *Order, p *plan) (string, error) {
	type file struct {
		Name, SHA256, URL string
		ID                string `json:",omitempty"` // it names one content for all time
	}
	var asks struct {
		Cells       []string
		Hashes      []string `json:",omitempty"` // of large cells, by their order; they are not in Cells
		Notebook    []byte
		Entrypoint  string `json:",omitempty"`
		Environment string
		Env         map[string]string
		Timeout     *float64
		StopOnError bool
		LinkImages  bool
		Network     bool     `json:",omitempty"`
		Packages    []string `json:",omitempty"`
		Session     string   `json:",omitempty"` // it has one environment
		Command     bool     `json:",omitempty"`
		Files       []file
	}
	var err error
	if asks.Cells, asks.Notebook, err = o.program(); err != nil {
		return "", err
	}
	for i, cell := range asks.Cells { // as JSON one may have six times its bytes
		if len(cell) >= intake.SpoolMemory {
			hash := sha256.Sum256([]byte(cell))
			asks.Cells[i], asks.Hashes = "", append(asks.Hashes, strconv.Itoa(i)+" "+hex.EncodeToString(hash[:]))
		}
	}
	if asks.Entrypoint, err = o.entrypoint(); err != nil {
		return "", err
	}
	if book := jsontext.Value(o.Notebook).Clone(); asks.Notebook != nil && book.Canonicalize() == nil {
		asks.Notebook = book
	}
	asks.Environment, asks.Env = p.spec.Environment.Name, p.spec.Env
	if p.session != nil {
		asks.Environment, asks.Session, asks.Command = "", p.session.id, p.session.command != ""
	}
	asks.Timeout = o.Timeout
	asks.StopOnError, asks.LinkImages = p.spec.StopOnError, p.linkImages
	asks.Packages = p.dependencies.Entries
	asks.Network = p.spec.Network != nil
	for _, in := range p.inputs.List {
		f := file{Name: in.Name, URL: in.URL, ID: in.ID}
		if in.URL == "" && in.ID == "" {
			if f.SHA256, err = in.hash(); err != nil {
				return "", err
			}
		}
		asks.Files = append(asks.Files, f)
	}
	slices.SortFunc(asks.Files, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(asks); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (in *Input) hash() (string, error) {
	content, err := in.Open()
	if err != nil {
		return "", err
	}
	defer content.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
