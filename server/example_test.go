package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"notebox/environments"
	"notebox/runner"
	"notebox/server"
	"notebox/storage"
)

// echo stands for a real runner, such as pool.Pool: it ends every run
// at once and well.
type echo struct{}

func (echo) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	if err := events.File(ctx, "out.txt", strings.NewReader("done")); err != nil {
		return nil, err
	}
	return &runner.Outcome{Status: runner.StatusOK, Notebook: spec.Notebook}, nil
}

// A Server on a runner and a store of one's own.
func Example() {
	temp, _ := os.MkdirTemp("", "example-")
	defer os.RemoveAll(temp)
	store, err := storage.Open(context.Background(), storage.Options{URL: "mem://"})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	api, err := server.New(server.Config{
		Runner:       echo{},
		Store:        store,
		Environments: []environments.Environment{{Name: "jupyter", Language: "python", Kernel: environments.Kernel{Name: "python3"}}},
		PublicURL:    "https://code.example.org",
		TempDir:      temp,
	})
	if err != nil {
		panic(err)
	}
	defer api.Close()

	request := httptest.NewRequest(http.MethodPost, "https://code.example.org/v1/execute", strings.NewReader(`{"code":"x = 1"}`))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	api.Handler().ServeHTTP(answer, request)

	var reply struct {
		Status string
		Files  []struct{ Path, URL string }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &reply); err != nil {
		panic(err)
	}
	fmt.Println(answer.Code, reply.Status, reply.Files[0].Path)
	fmt.Println(strings.HasPrefix(reply.Files[0].URL, "https://code.example.org/v1/files/"))
	// Output:
	// 200 ok /mnt/data/out.txt
	// true
}
