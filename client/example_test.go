package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"notebox/client"
)

// A run gets a file and leaves one, which is fetched by its URL. A server that always
// gives the same answers stands for the notebox here.
func Example() {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/files/total.txt" {
			fmt.Fprint(w, "5\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"ok","text":"done\n","files":[{"path":"/mnt/data/total.txt","name":"total.txt","url":"http://%s/v1/files/total.txt"}]}`, r.Host)
	}))
	defer ts.Close()

	ctx := context.Background()
	notebox := client.New(client.Options{BaseURL: ts.URL})
	result, err := notebox.Execute(ctx, client.Run{
		Code: "import csv\ntotal = sum(int(n) for (n,) in csv.reader(open('numbers.csv')))\nprint(total, file=open('total.txt', 'w'))\nprint('done')",
		Files: []client.File{{Name: "numbers.csv", Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("2\n3\n")), nil
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(result.Status, ": ", result.Text)
	total, err := client.Fetch(ctx, http.DefaultClient, result.Files[0].URL, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s", result.Files[0].Name, total)
	// Output:
	// ok: done
	// total.txt: 5
}
