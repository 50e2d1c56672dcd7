// Command analysis sends a program and its data to notebox and shows what comes
// back: text, images and files. It is what make demo runs.
//
//	go run ./examples/analysis -url http://127.0.0.1:8080 -key …
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"notebox/client"
)

// maxFile bounds what is fetched, in bytes: the file that analysis.py writes is small.
const maxFile = 10 << 20

func main() {
	log.SetFlags(0)
	url := flag.String("url", "http://127.0.0.1:8080", "where notebox answers")
	key := flag.String("key", "", "API key, where it wants one")
	folder := flag.String("folder", "examples/analysis", "where analysis.py and rides.csv are")
	flag.Parse()

	code, err := os.ReadFile(filepath.Join(*folder, "analysis.py"))
	if err != nil {
		log.Fatal(err)
	}
	notebox, ctx := client.New(client.Options{BaseURL: *url, Key: *key}), context.Background()
	r, err := notebox.Execute(ctx, client.Run{Code: string(code), Files: []client.File{{
		Name: "rides.csv",
		Open: func() (io.ReadCloser, error) { return os.Open(filepath.Join(*folder, "rides.csv")) },
	}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("status: %s (%d ms in the sandbox, %d ms to get one)\n\n%s\n", r.Status, r.Usage.WallMS, r.Usage.QueueMS, r.Text)
	for _, i := range r.Images {
		fmt.Printf("image  %s  %d×%d\n       %s\n", i.Name, i.Width, i.Height, i.URL)
	}
	for _, f := range r.Files {
		fmt.Printf("file   %s  %s, %d bytes, sha256 %.12s…\n       %s\n", f.Path, f.MediaType, f.Bytes, f.SHA256, f.URL)
	}
	fmt.Printf("the executed notebook\n       %s\n", r.Notebook.URL)
	if r.Status != "ok" || len(r.Images) == 0 || len(r.Files) == 0 {
		log.Fatalf("the analysis should have ended well, with an image and files. %s", r.Hint)
	}
	content, err := client.Fetch(ctx, http.DefaultClient, r.Files[0].URL, maxFile)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("fetched %s by its URL: %d bytes\n", filepath.Base(r.Files[0].Path), len(content))
}
