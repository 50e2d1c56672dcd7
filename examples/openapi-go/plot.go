// Command plot makes a plot by clients that ogen made of notebox's OpenAPI documents: of the native
// API, and of the calls that Dify has. In this folder:
//
//	go tool ogen -loglevel error -config config.yml -clean -target native -package native ${NOTEBOX_URL:-http://127.0.0.1:8080}/openapi.json
//	go tool ogen -loglevel error -config config.yml -clean -target dify -package dify ${NOTEBOX_URL:-http://127.0.0.1:8080}/dify/openapi.json
//	go vet .
//	go run .
//
// NOTEBOX_URL and NOTEBOX_API_KEY say where notebox is.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/ogen-go/ogen/ogenerrors"

	"openapi/dify"
	"openapi/native"
)

const code = `
import matplotlib.pyplot as plt, pandas as pd
pd.read_csv("rides.csv").plot(x="day", y="rides")
plt.show()
`

func main() {
	if err := draw(cmp.Or(os.Getenv("NOTEBOX_URL"), "http://127.0.0.1:8080"), os.Getenv("NOTEBOX_API_KEY")); err != nil {
		log.Fatal(err)
	}
}

// draw prints what the service at a URL makes. An empty key is none.
func draw(url, key string) error {
	client, err := native.NewClient(url, nativeKey(key))
	if err != nil {
		return err
	}
	name, err := plot(client)
	if err != nil {
		return err
	}
	fmt.Println("native:", name)
	text, err := notebook(client)
	if err != nil {
		return err
	}
	fmt.Println("notebook:", text)
	sandboxes, err := dify.NewClient(url, difyKey(key))
	if err != nil {
		return err
	}
	if name, err = plotInSandbox(sandboxes); err != nil {
		return err
	}
	fmt.Println("dify:", name)
	return nil
}

// plot sends code with a file, and returns the plot's name and size.
func plot(client *native.Client) (string, error) {
	reply, err := run(client, &native.Request{
		Code: native.NewOptNilString(code),
		Files: native.NewOptNilInputFileArray([]native.InputFile{{
			Name: native.NewOptNilString("rides.csv"),
			Text: native.NewOptNilString("day,rides\n1,120\n2,150\n3,90\n"),
		}}),
		Timeout: native.NewOptNilFloat64(60),
	})
	if err != nil {
		return "", err
	}
	image := reply.Images[0]
	return fmt.Sprintf("%s, %d x %d", image.Name, image.Width, image.Height), nil
}

// notebook sends a notebook, and returns what it printed.
func notebook(client *native.Client) (string, error) {
	cell := native.NotebookCellsItem{"cell_type": []byte(`"code"`), "source": []byte(`"print(6 * 7)"`)}
	reply, err := run(client, &native.Notebook{Nbformat: 4, Cells: []native.NotebookCellsItem{cell}})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(reply.Text), nil
}

// run returns the reply of a run that went well.
func run(client *native.Client, request native.ExecuteReq) (*native.Reply, error) {
	answer, err := client.Execute(context.Background(), request, native.ExecuteParams{})
	if err != nil {
		return nil, err
	}
	reply, ok := answer.(*native.Reply)
	if !ok {
		return nil, fmt.Errorf("notebox answers %+v", answer)
	}
	if reply.Status != native.ReplyStatusOk {
		return nil, errors.New(reply.Text)
	}
	return reply, nil
}

// plotInSandbox draws by the calls that Dify has.
func plotInSandbox(client *dify.Client) (string, error) {
	ctx := context.Background()
	made, err := client.CreateSandbox(ctx, &dify.CreateSandboxReq{})
	if err != nil {
		return "", err
	}
	sandbox, ok := made.(*dify.CreateSandboxOK)
	if !ok {
		return "", fmt.Errorf("there is no sandbox: %+v", made)
	}
	ran, err := client.RunCode(ctx, &dify.RunCodeReq{
		SandboxID: sandbox.SandboxID,
		Code:      "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()",
	})
	if err != nil {
		return "", err
	}
	if _, err := client.StopSandbox(ctx, &dify.StopSandboxReq{SandboxID: sandbox.SandboxID}); err != nil {
		return "", err
	}
	answer, ok := ran.(*dify.RunCodeOK)
	if !ok || len(answer.Images) == 0 {
		return "", fmt.Errorf("the run failed: %+v", ran)
	}
	return answer.Images[0].Name, nil
}

// nativeKey and difyKey give each request the API key, if there is one, as Authorization and not as
// X-API-Key.
type (
	nativeKey string
	difyKey   string
)

func (k nativeKey) Bearer(context.Context, native.OperationName) (native.Bearer, error) {
	return native.Bearer{Token: string(k)}, none(string(k))
}

func (nativeKey) ApiKey(context.Context, native.OperationName) (native.ApiKey, error) {
	return native.ApiKey{}, none("")
}

func (k difyKey) Bearer(context.Context, dify.OperationName) (dify.Bearer, error) {
	return dify.Bearer{Token: string(k)}, none(string(k))
}

func (difyKey) ApiKey(context.Context, dify.OperationName) (dify.ApiKey, error) {
	return dify.ApiKey{}, none("")
}

// none has ogen send no header if there is no key.
func none(key string) error {
	if key == "" {
		return ogenerrors.ErrSkipClientSecurity
	}
	return nil
}
