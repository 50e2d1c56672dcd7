// Command analysis sends a program and its data to notebox and shows what comes
// back: text, images and files. It is what make demo runs.
//
//	go run ./examples/analysis -url http://127.0.0.1:8080 -key …
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
)

// reply is the part of notebox's answer that this program looks at.
type reply struct {
	Status string `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint"`
	Images []struct {
		Name          string
		Width, Height int
		URL           string
	} `json:"images"`
	Files []struct {
		Path      string
		MediaType string `json:"media_type"`
		Bytes     int64
		SHA256    string
		URL       string
	} `json:"files"`
	Notebook struct{ URL string } `json:"notebook"`
	Usage    struct {
		QueueMS int64 `json:"queue_ms"`
		WallMS  int64 `json:"wall_ms"`
	} `json:"usage"`
}

func main() {
	log.SetFlags(0)
	url := flag.String("url", "http://127.0.0.1:8080", "where notebox answers")
	key := flag.String("key", "", "API key, where it wants one")
	folder := flag.String("folder", "examples/analysis", "where analysis.py and rides.csv are")
	flag.Parse()

	r, err := execute(*url, *key, filepath.Join(*folder, "analysis.py"), filepath.Join(*folder, "rides.csv"))
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
	size, err := fetch(r.Files[0].URL)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("fetched %s by its URL: %d bytes\n", filepath.Base(r.Files[0].Path), size)
}

// execute posts code and files as a form, as a browser or curl -F would.
func execute(url, key, code string, files ...string) (*reply, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	source, err := os.ReadFile(code)
	if err != nil {
		return nil, err
	}
	if err := form.WriteField("code", string(source)); err != nil {
		return nil, err
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		part, err := form.CreateFormFile("files", filepath.Base(name))
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(content); err != nil {
			return nil, err
		}
	}
	if err := form.Close(); err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, url+"/v1/execute?images=url", &body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		problem, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		return nil, fmt.Errorf("%s: %s", res.Status, problem)
	}
	var r reply
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		return nil, fmt.Errorf("the reply: %w", err)
	}
	return &r, nil
}

func fetch(url string) (int64, error) {
	res, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, res.Status)
	}
	return io.Copy(io.Discard, res.Body)
}
