package storage_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"

	"notebox/storage"
	"notebox/storage/storagetest"
)

// azureParts are those of the connection string.
func azureParts(t *testing.T, server *storagetest.Server) map[string]string {
	t.Helper()
	parts := map[string]string{}
	for part := range strings.SplitSeq(server.Getenv("AZURE_STORAGE_CONNECTION_STRING"), ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			parts[name] = value
		}
	}
	return parts
}

// endpointOf is a URL of container on a server, for credentials without an address.
func endpointOf(container string, parts map[string]string) string {
	return container + "?" + url.Values{"endpoint": {parts["BlobEndpoint"]}}.Encode()
}

func TestAzureByAnyVariables(t *testing.T) {
	server := storagetest.Azurite(t)
	parts := azureParts(t, server)
	none := map[string]string{"AZURE_STORAGE_CONNECTION_STRING": ""}
	for _, test := range []struct {
		desc string
		url  string
		env  map[string]string
	}{
		{"connection string and a container's name", "azblob://", map[string]string{
			"AZURE_STORAGE_CONNECTION_STRING": server.Getenv("AZURE_STORAGE_CONNECTION_STRING"), "AZURE_BLOB_CONTAINER_NAME": "by-name"}},
		{"account and key", endpointOf("azblob://by-key", parts), map[string]string{
			"AZURE_STORAGE_ACCOUNT_NAME": parts["AccountName"], "AZURE_STORAGE_ACCOUNT_KEY": parts["AccountKey"]}},
		{"gocloud's names", endpointOf("azblob://by-key", parts), map[string]string{
			"AZURE_STORAGE_ACCOUNT": parts["AccountName"], "AZURE_STORAGE_KEY": parts["AccountKey"]}},
	} {
		t.Run(test.desc, func(t *testing.T) {
			env := map[string]string{}
			for _, m := range []map[string]string{none, test.env} {
				for name, value := range m {
					env[name] = value
				}
			}
			s := mustOpen(t, storage.Options{URL: test.url, Getenv: server.With(env)})
			require.NotContains(t, s.Name(), "?")
			mustPut(t, s, "runs/a", []byte("a"))
			reply, err := http.Get(mustLink(t, s, "runs/a"))
			require.NoError(t, err)
			require.NoError(t, reply.Body.Close())
			require.Equal(t, http.StatusOK, reply.StatusCode)
		})
	}
}

// TestAzureBySAS: a token cannot sign links, so that this service serves them; and it is
// a secret in each URL that its client asks for.
func TestAzureBySAS(t *testing.T) {
	t.Parallel()
	server := storagetest.Azurite(t)
	parts := azureParts(t, server)
	mustOpen(t, storage.Options{URL: "azblob://shared", Getenv: server.Getenv}) // makes it
	key, err := service.NewSharedKeyCredential(parts["AccountName"], parts["AccountKey"])
	require.NoError(t, err)
	token, err := sas.BlobSignatureValues{
		ContainerName: "shared", ExpiryTime: time.Now().Add(time.Hour).UTC(),
		Permissions: (&sas.ContainerPermissions{Read: true, Create: true, Write: true, Delete: true, List: true}).String(),
	}.SignWithSharedKey(key)
	require.NoError(t, err)
	env := server.With(map[string]string{
		"AZURE_STORAGE_CONNECTION_STRING": "", "AZURE_STORAGE_ACCOUNT_NAME": parts["AccountName"], "AZURE_STORAGE_SAS_TOKEN": "?" + token.Encode(),
	})
	s := mustOpen(t, storage.Options{URL: endpointOf("azblob://shared", parts), Getenv: env})
	mustPut(t, s, "runs/a", []byte("a"))
	require.Equal(t, "a", mustGet(t, s, "runs/a"))
	link := mustLink(t, s, "runs/a")
	require.True(t, strings.HasPrefix(link, "https://notebox.example.org/v1/files/"), link)

	server.Stop(t)
	requireQuiet(t, s, token.Signature(), url.QueryEscape(token.Signature()))
}

// requireQuiet makes a store that cannot work say so in every way, without secrets.
func requireQuiet(t *testing.T, s *storage.Store, secrets ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var errs []error
	_, err := s.Put(ctx, "runs/b", strings.NewReader("b"), "b")
	errs = append(errs, err)
	_, err = s.Get(ctx, "runs/a")
	errs = append(errs, err, s.Delete(ctx, "runs/a"), s.PutNew(ctx, storage.RecordKey("a"), nil), s.Ready(ctx))
	_, err = s.Read(ctx, storage.RecordKey("a"), 1)
	errs = append(errs, err)
	for _, err := range s.List(ctx, storage.RecordKey("a")) {
		errs = append(errs, err)
	}
	for _, err := range errs {
		require.Error(t, err)
		requireNoSecret(t, err, secrets...)
	}
}

func requireNoSecret(t *testing.T, err error, secrets ...string) {
	t.Helper()
	for _, secret := range append(secrets, "sig=", "Signature=", "AccountKey", "\n") {
		require.NotContains(t, err.Error(), secret)
	}
}

func TestErrorsHoldNoSecret(t *testing.T) {
	azure, s3 := storagetest.Azurite(t), storagetest.S3(t)
	parts := azureParts(t, azure)
	wrong := "d3JvbmdzZWNyZXR3cm9uZ3NlY3JldA=="
	connection := strings.Replace(azure.Getenv("AZURE_STORAGE_CONNECTION_STRING"), parts["AccountKey"], wrong, 1)
	t.Run("a key of Azure's that is wrong", func(t *testing.T) {
		_, err := storage.Open(t.Context(), storage.Options{URL: azure.URL(t), Getenv: azure.With(map[string]string{"AZURE_STORAGE_CONNECTION_STRING": connection})})
		require.ErrorContains(t, err, "403")
		requireNoSecret(t, err, wrong)
	})
	t.Run("a key of Azure's that is none", func(t *testing.T) {
		none := strings.Replace(connection, wrong, "no base64!", 1)
		_, err := storage.Open(t.Context(), storage.Options{URL: azure.URL(t), Getenv: azure.With(map[string]string{"AZURE_STORAGE_CONNECTION_STRING": none})})
		require.ErrorContains(t, err, "not base64")
		requireNoSecret(t, err, "no base64!")
	})
	t.Run("a connection string that is none", func(t *testing.T) {
		_, err := storage.Open(t.Context(), storage.Options{URL: azure.URL(t), Getenv: azure.With(map[string]string{"AZURE_STORAGE_CONNECTION_STRING": wrong[:20] + ";x"})})
		require.ErrorContains(t, err, "AZURE_STORAGE_CONNECTION_STRING")
		requireNoSecret(t, err, wrong[:20])
	})
	t.Run("a secret of S3's that is wrong", func(t *testing.T) {
		s := mustOpen(t, storage.Options{URL: s3.URL(t), Getenv: s3.With(map[string]string{"AWS_SECRET_ACCESS_KEY": wrong})})
		requireQuiet(t, s, wrong)
	})
	t.Run("a project that is missing", func(t *testing.T) {
		gcs, _ := storagetest.GCS(t)
		account := gcs.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
		_, err := storage.Open(t.Context(), storage.Options{
			URL: "gs://bucket?" + url.Values{"endpoint": {gcs.Endpoint}}.Encode(), Getenv: func(string) string { return "" },
		})
		require.ErrorContains(t, err, "GOOGLE_CLOUD_PROJECT")
		requireNoSecret(t, err, account)
	})
}

// TestLinksOfACloudLastAWeek at most: a longer time is refused before the first link is.
func TestLinksOfACloudLastAWeek(t *testing.T) {
	server := storagetest.S3(t)
	o := storage.Options{URL: server.URL(t), Getenv: server.Getenv, TTL: 8 * 24 * time.Hour}
	_, err := storage.Open(t.Context(), o)
	require.ErrorContains(t, err, "168h")
	o.ServeFiles = storage.ServeProxy
	mustOpen(t, o)
	o.ServeFiles = "cdn"
	_, err = storage.Open(t.Context(), o)
	require.ErrorContains(t, err, "want auto or proxy")
}
