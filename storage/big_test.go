package storage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
	"notebox/storage/storagetest"
)

const (
	// bigBytes is enough to tell a file that is held in memory; with NOTEBOX_TEST_LARGE it
	// is 1 GiB.
	bigBytes   = 256 << 20
	largeBytes = 1 << 30

	// maxProcessBytes is what the process may have in memory at any time, all of it.
	maxProcessBytes = 200 << 20

	childBig    = "NOTEBOX_TEST_BIG"
	largeWanted = "NOTEBOX_TEST_LARGE"
)

// bigJob is what the test's program does as a process of its own.
type bigJob struct {
	URL   string
	Env   map[string]string
	Bytes int64
}

// bigStores are those that do not hold files in memory.
var bigStores = []struct {
	desc string
	open func(t *testing.T) (url string, env map[string]string)
}{
	{"file", func(t *testing.T) (string, map[string]string) {
		return "file://" + filepath.Join(t.TempDir(), "store"), nil
	}},
	{"azblob", func(t *testing.T) (string, map[string]string) {
		s := storagetest.Azurite(t)
		return s.URL(t), s.Environment()
	}},
	{"s3", func(t *testing.T) (string, map[string]string) {
		s := storagetest.S3(t)
		return s.URL(t), s.Environment()
	}},
	{"gs", func(t *testing.T) (string, map[string]string) {
		s, _ := storagetest.GCS(t)
		return s.URL(t), s.Environment()
	}},
}

// TestBigFileInSmallProcess of whose memory the kernel tells the highest mark.
func TestBigFileInSmallProcess(t *testing.T) {
	if text := os.Getenv(childBig); text != "" {
		putAndGetBig(t, text)
		return
	}
	t.Parallel()
	size := int64(bigBytes)
	if os.Getenv(largeWanted) != "" {
		size = largeBytes
	}
	for _, store := range bigStores {
		t.Run(store.desc, func(t *testing.T) {
			address, env := store.open(t)
			job, err := json.Marshal(bigJob{address, env, size})
			require.NoError(t, err)
			child := exec.Command(os.Args[0], "-test.run=^TestBigFileInSmallProcess$", "-test.v")
			child.Env = append(os.Environ(), childBig+"="+string(job))
			output, err := child.CombinedOutput()
			require.NoError(t, err, string(output))
			_, rest, found := bytes.Cut(output, []byte("peak "))
			require.True(t, found, string(output))
			var peak int64
			var seconds [2]float64
			_, err = fmt.Sscanf(string(rest), "%d put %f get %f", &peak, &seconds[0], &seconds[1])
			require.NoError(t, err, string(output))
			t.Logf("%d MiB: %d MiB at most, put in %.1f s, got in %.1f s", size>>20, peak>>20, seconds[0], seconds[1])
			require.Less(t, peak, int64(maxProcessBytes))
		})
	}
}

func putAndGetBig(t *testing.T, text string) {
	var job bigJob
	require.NoError(t, json.Unmarshal([]byte(text), &job))
	s := mustOpen(t, storage.Options{URL: job.URL, Getenv: func(name string) string { return job.Env[name] }})
	began := time.Now()
	put, err := s.Put(t.Context(), fileKey("big.bin"), io.LimitReader(rand.NewChaCha8([32]byte{7}), job.Bytes), "big.bin")
	require.NoError(t, err)
	require.Equal(t, job.Bytes, put.Bytes)
	putTime := time.Since(began)

	began = time.Now()
	r, err := s.Get(t.Context(), fileKey("big.bin"))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	hash := sha256.New()
	_, err = io.Copy(hash, r)
	require.NoError(t, err)
	require.Equal(t, put.SHA256, hex.EncodeToString(hash.Sum(nil)))
	getTime := time.Since(began)

	if job.Env != nil {
		_, err := r.Seek(job.Bytes-10, io.SeekStart)
		require.NoError(t, err)
		end, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Len(t, end, 10)
	}
	fmt.Printf("peak %d put %f get %f\n", peakBytes(t), putTime.Seconds(), getTime.Seconds())
}

// peakBytes is the most that this process has had in memory. It is not the resource usage
// that a parent gets, which counts the parent's memory before exec.
func peakBytes(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	require.True(t, found)
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	require.NoError(t, err)
	return kib << 10
}
