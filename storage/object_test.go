package storage

import (
	"mime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDisposition(t *testing.T) {
	for _, test := range []struct {
		desc, name, media string
		want              string
	}{
		{"image", "a.png", "image/png", `inline; filename="a.png"`},
		{"page", "a.html", "text/html", `attachment; filename="a.html"`},
		{"drawing", "a.svg", "image/svg+xml", `attachment; filename="a.svg"`},
		{"PDF", "a.pdf", "application/pdf", `attachment; filename="a.pdf"`},
		{"table", "a b.csv", "text/csv", `attachment; filename="a b.csv"`},
		{"in a folder", "plots/a.csv", "text/csv", `attachment; filename="a.csv"`},
		{"in a folder of Windows", `..\a.csv`, "text/csv", `attachment; filename="a.csv"`},
		{"not ASCII", "Übersicht 数.csv", "text/csv", `attachment; filename="_bersicht _.csv"; filename*=UTF-8''%C3%9Cbersicht%20%E6%95%B0.csv`},
		{"quotes", `a"; x="b'.csv`, "text/csv", `attachment; filename="a_; x=_b'.csv"; filename*=UTF-8''a%22%3B%20x%3D%22b%27.csv`},
		{"percent", "a%41.csv", "text/csv", `attachment; filename="a_41.csv"; filename*=UTF-8''a%2541.csv`},
		{"header injection", "a\r\nSet-Cookie: x=1", "text/csv", `attachment; filename="a__Set-Cookie: x=1"`},
		{"right-to-left override", "photo\u202egpj.exe", "text/csv", `attachment; filename="photo_gpj.exe"`},
		{"not UTF-8", "a\xff.csv", "text/csv", `attachment; filename="a_.csv"`},
		{"empty", "", "text/csv", `attachment; filename="file"`},
		{"parent", "a/..", "text/csv", `attachment; filename="file"`},
		{"too long", strings.Repeat("a", 300), "text/csv", `attachment; filename="` + strings.Repeat("a", 255) + `"`},
	} {
		t.Run(test.desc, func(t *testing.T) {
			require.Equal(t, test.want, Object{Name: test.name, MediaType: test.media}.Disposition())
		})
	}
}

func FuzzDisposition(f *testing.F) {
	for _, seed := range []string{"a.csv", `a"b\`, "a\r\nb", "数\u202e", "\xff", "%41%", "a;b=c", "=?utf-8?q?x?=", ".. "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		header := Object{Name: name, MediaType: "text/html"}.Disposition()
		for i := range len(header) {
			require.True(t, ' ' <= header[i] && header[i] <= '~', "%q", header)
		}
		kind, parameters, err := mime.ParseMediaType(header)
		require.NoError(t, err, "%q", header)
		require.Equal(t, "attachment", kind)
		require.Len(t, parameters, 1)
		require.Equal(t, downloadName(name), parameters["filename"])
		require.NotContains(t, parameters["filename"], "/")
	})
}

func TestMediaType(t *testing.T) {
	const png, jpeg, page = "\x89PNG\x0d\x0a\x1a\x0a", "\xff\xd8\xff\xe0", "<!DOCTYPE html><script>"
	for _, test := range []struct{ desc, name, head, want string }{
		{"by name", "a.csv", "x,y", "text/csv"},
		{"case counts nothing", "A.CSV", "x,y", "text/csv"},
		{"the last extension", "a.csv.gz", "\x1f\x8b\x08", "application/gzip"},
		{"notebook", "a.ipynb", "{}", "application/x-ipynb+json"},
		{"spreadsheet, though a zip inside", "a.xlsx", "PK\x03\x04", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		{"parquet", "a.parquet", "PAR1", "application/vnd.apache.parquet"},
		{"PDF", "a.pdf", "%PDF-1.7", "application/pdf"},
		{"script", "a.svg", "<svg onload=alert(1)>", "image/svg+xml"},
		{"image by both", "a.png", png, "image/png"},
		{"image by content, another by name", "a.png", jpeg, "image/jpeg"},
		{"image by name, a page by content", "a.png", page, "application/octet-stream"},
		{"image by content alone", "plot", png, "image/png"},
		{"image by name alone", "a.jpg", "", "application/octet-stream"},
		{"page by content alone", "index", page, "text/html"},
		{"page by content, table by name", "a.csv", page, "text/csv"},
		{"text by content", "README", "hello", "text/plain"},
		{"unknown", "a.xyz", "\x00\x01\x02", "application/octet-stream"},
		{"no name", "", "", "text/plain"},
		{"in a folder with an extension", "a.csv/b", "\x00", "application/octet-stream"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			require.Equal(t, test.want, MediaType(test.name, []byte(test.head)))
		})
	}
	for extension, media := range typesByExtension {
		parsed, parameters, err := mime.ParseMediaType(media)
		require.NoError(t, err, extension)
		require.Empty(t, parameters, extension)
		require.Equal(t, media, parsed, extension)
		require.Equal(t, strings.ToLower(extension), extension)
	}
}
