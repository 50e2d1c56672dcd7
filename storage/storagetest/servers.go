package storagetest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The names that the servers know.
const (
	AzureAccount = "notebox"
	S3AccessKey  = "notebox-test"
	S3Region     = "eu-test-1"
	GCSAccount   = "links@notebox-test.iam.gserviceaccount.com"
	GCSProject   = "notebox-test"
)

// Azurite starts Microsoft's emulator of Azure Blob Storage, which checks signatures and
// times. The account and its key are the test's own.
func Azurite(t testing.TB) *Server {
	t.Helper()
	program := installed(t, "azurite/node_modules/azurite/dist/src/blob/main.js")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("node is missing: run scripts/stores.sh, which installs it")
	}
	folder, key := t.TempDir(), base64.StdEncoding.EncodeToString([]byte(randomText()+randomText()))
	s := &Server{name: "azurite", command: func(port int) *exec.Cmd {
		command := exec.Command(node, program, "--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(port),
			"--location", folder, "--silent", "--disableTelemetry", "--disableProductStyleUrl", "--skipApiVersionCheck")
		command.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+AzureAccount+":"+key)
		command.Dir = folder
		return command
	}}
	s.begin(t)
	s.url = func(container string) string { return "azblob://" + container }
	s.variables = map[string]string{
		"AZURE_STORAGE_CONNECTION_STRING": fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s/%s;",
			AzureAccount, key, s.Endpoint, AzureAccount),
	}
	return s
}

// S3 starts versitygw over a folder, a server of Amazon's protocol that checks
// signatures, times and conditions.
func S3(t testing.TB) *Server {
	t.Helper()
	program := installed(t, "bin/versitygw")
	folder, secret := t.TempDir(), randomText()
	data, sidecar := filepath.Join(folder, "data"), filepath.Join(folder, "metadata")
	for _, path := range []string{data, sidecar} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{name: "versitygw", command: func(port int) *exec.Cmd {
		command := exec.Command(program, "--port", "127.0.0.1:"+strconv.Itoa(port), "--region", S3Region, "--quiet",
			"posix", "--sidecar", sidecar, data) // not every file system has attributes
		command.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+S3AccessKey, "ROOT_SECRET_ACCESS_KEY="+secret)
		command.Dir = folder
		return command
	}}
	s.begin(t)
	s.url = func(bucket string) string {
		return "s3://" + bucket + "?" + url.Values{"region": {S3Region}, "endpoint": {s.Endpoint}}.Encode()
	}
	s.variables = map[string]string{"AWS_ACCESS_KEY_ID": S3AccessKey, "AWS_SECRET_ACCESS_KEY": secret}
	return s
}

// GCS starts fake-gcs-server, which checks no signature: key is what verifies links.
func GCS(t testing.TB) (s *Server, key *rsa.PublicKey) {
	t.Helper()
	program := installed(t, "bin/fake-gcs-server")
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	// In memory: a folder would hold a whole key in one name of a file.
	s = &Server{name: "fake-gcs-server", command: func(port int) *exec.Cmd {
		address := "127.0.0.1:" + strconv.Itoa(port)
		return exec.Command(program, "-scheme", "http", "-host", "127.0.0.1", "-port", strconv.Itoa(port),
			"-backend", "memory", "-public-host", address, "-external-url", "http://"+address, "-log-level", "error")
	}}
	s.begin(t)
	buckets := &gcsBuckets{server: s}
	s.stopping, s.started = buckets.remember, buckets.restore
	s.url = func(bucket string) string {
		return "gs://" + bucket + "?" + url.Values{"project": {GCSProject}, "endpoint": {s.Endpoint}}.Encode()
	}
	s.variables = map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": credentialsFile(t, private)}
	return s, &private.PublicKey
}

// credentialsFile writes a service account's key as Google gives it out.
func credentialsFile(t testing.TB, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type":         "service_account",
		"project_id":   GCSProject,
		"client_email": GCSAccount,
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":    "http://127.0.0.1:1/never",
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gcsBuckets lets buckets outlive a restart.
type gcsBuckets struct {
	server *Server
	names  []string
}

func (b *gcsBuckets) remember(ctx context.Context) error {
	var list struct {
		Items []struct {
			Name string `json:"name"`
		} `json:"items"`
	}
	content, err := call(ctx, http.MethodGet, b.server.Endpoint+"/storage/v1/b?project="+GCSProject, "")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return err
	}
	b.names = nil
	for _, item := range list.Items {
		b.names = append(b.names, item.Name)
	}
	return nil
}

func (b *gcsBuckets) restore(ctx context.Context) error {
	for _, name := range b.names {
		body := fmt.Sprintf("{%q: %q}", "name", name)
		if _, err := call(ctx, http.MethodPost, b.server.Endpoint+"/storage/v1/b?project="+GCSProject, body); err != nil {
			return err
		}
	}
	return nil
}

func call(ctx context.Context, method, url, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	content, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, url, reply.Status)
	}
	return content, err
}

func randomText() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return fmt.Sprintf("%x", b)
}
