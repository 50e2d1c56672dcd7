package dify

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

// OpenAPI describes the calls (OpenAPI 3.1), for Dify to import. Its server is a place
// holder; see Document.
//
//go:embed openapi.json
var OpenAPI []byte

// placeholder is the address of the server in OpenAPI.
const placeholder = `"http://127.0.0.1:8080"`

// Document is OpenAPI with the address base.
func Document(base string) ([]byte, error) {
	own, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	return bytes.Replace(OpenAPI, []byte(placeholder), own, 1), nil
}

// FilesPrefix is where files are given to those who have a link: what follows it are the
// sandbox and the name of the file.
const FilesPrefix = "/files/"
