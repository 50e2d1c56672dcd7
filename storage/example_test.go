package storage_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"
	"time"

	"notebox/storage"
)

func Example() {
	ctx := context.Background()
	s, err := storage.Open(ctx, storage.Options{URL: "mem://", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()

	started := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	key := storage.RunKey(started, "run_1", storage.KindFile, "plots/100%.csv")
	object, err := s.Put(ctx, key, strings.NewReader("a,b\n1,2\n"), "plots/100%.csv")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(object.Key)
	fmt.Println(object.MediaType, object.Bytes, object.SHA256[:8])

	link, _, err := s.Link(ctx, key, "http://127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	u, err := url.Parse(link)
	if err != nil {
		log.Fatal(err)
	}
	asked := strings.TrimPrefix(u.Path, storage.LinkPath)
	if err := s.Verify(asked, u.Query()); err != nil {
		log.Fatal(err)
	}
	r, err := s.Get(ctx, asked)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	content, err := io.ReadAll(r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Disposition())
	fmt.Printf("%q\n", content)
	// Output:
	// runs/2026-07-01/run_1/files/plots=/100=25.csv
	// text/csv 8 492d5ea4
	// attachment; filename="100_.csv"; filename*=UTF-8''100%25.csv
	// "a,b\n1,2\n"
}
