package storage

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

// token is an identity's.
type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "identity", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestAzureSignsForAnIdentity with the key that Azure gives for it, which is asked for once.
func TestAzureSignsForAnIdentity(t *testing.T) {
	key, asked := []byte("0123456789abcdef0123456789abcdef"), 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer identity" || r.URL.Query().Get("comp") != "userdelegationkey" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		asked++
		now := time.Now().UTC()
		w.Header().Set("Content-Type", "application/xml")
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><UserDelegationKey><SignedOid>oid</SignedOid><SignedTid>tid</SignedTid>`+
			`<SignedStart>%s</SignedStart><SignedExpiry>%s</SignedExpiry><SignedService>b</SignedService><SignedVersion>2020-02-10</SignedVersion><Value>%s</Value></UserDelegationKey>`,
			now.Format(time.RFC3339), now.Add(maxCloudTTL).Format(time.RFC3339), base64.StdEncoding.EncodeToString(key))
	}))
	defer server.Close()

	a := &azure{name: "c", protocol: sas.ProtocolHTTPS}
	services, err := a.connect(azureAccount{url: server.URL + "/account/", identity: token{}, transport: server.Client()})
	require.NoError(t, err)
	a.container = services.NewContainerClient("c")
	require.True(t, a.signs())
	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	for range 3 {
		link, err := a.sign(t.Context(), "runs/ü.csv", until)
		require.NoError(t, err)
		u, err := url.Parse(link)
		require.NoError(t, err)
		require.Equal(t, "/account/c/runs/ü.csv", u.Path)
		q := u.Query()
		require.Equal(t, "r", q.Get("sp"))
		require.Equal(t, "b", q.Get("sr"))
		require.Equal(t, "https", q.Get("spr"))
		require.Equal(t, "oid", q.Get("skoid"))
		require.Equal(t, until.Format(sas.TimeFormat), q.Get("se"))
		require.Equal(t, delegatedSignature(key, u.Host, q), q.Get("sig"))
	}
	require.Equal(t, 1, asked)
}

// delegatedSignature is that of a user delegation SAS to the blob c/runs/ü.csv. See
// https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas.
func delegatedSignature(key []byte, host string, q url.Values) string {
	account, _, _ := strings.Cut(host, ".") // as in account.blob.core.windows.net
	text := strings.Join([]string{
		q.Get("sp"), q.Get("st"), q.Get("se"), "/blob/" + account + "/c/runs/ü.csv",
		q.Get("skoid"), q.Get("sktid"), q.Get("skt"), q.Get("ske"), q.Get("sks"), q.Get("skv"),
		"", "", "", "", "", "", q.Get("spr"), q.Get("sv"), q.Get("sr"), "", "", "", "", "", "", "", "", "",
	}, "\n")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestIAMSigns links if there is no private key.
func TestIAMSigns(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != http.StatusOK || r.URL.Path != "/v1/projects/-/serviceAccounts/me@example.org:signBlob" || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var in struct{ Payload []byte }
		if json.NewDecoder(r.Body).Decode(&in) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		sum := sha256.Sum256(in.Payload)
		signed, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		_ = json.NewEncoder(w).Encode(map[string][]byte{"signedBlob": signed})
	}))
	defer server.Close()
	signer, err := newGCSSigner(t.Context(), googleAccount{
		email: "me@example.org", iam: server.URL, tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"}),
	})
	require.NoError(t, err)
	content := []byte("to be signed")
	signature, err := signer.sign(t.Context(), content)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	require.NoError(t, rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature))

	status = http.StatusForbidden
	g := &gcs{name: "bucket", signer: signer}
	_, err = g.sign(t.Context(), "runs/a", time.Now().Add(time.Hour))
	require.ErrorContains(t, err, "IAM signBlob")
}

func TestParseGoogleAccount(t *testing.T) {
	for _, test := range []struct{ desc, content, email, err string }{
		{"nothing", "", "", ""},
		{"a person", `{"type":"authorized_user","refresh_token":"secret"}`, "", ""},
		{"an impersonated account", `{"type":"external_account","service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/me@example.org:generateAccessToken"}`, "me@example.org", ""},
		{"not JSON", "secret", "", "is not JSON"},
		{"no PEM", `{"client_email":"a@b","private_key":"secret"}`, "", "is not PEM"},
		{"another key", `{"client_email":"a@b","private_key":"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"}`, "", "is no RSA key"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			account, err := parseGoogleAccount([]byte(test.content))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.email, account.email)
		})
	}
}

func TestFindAzureAccount(t *testing.T) {
	const suffix = ";AccountName=a;AccountKey=k=="
	for _, test := range []struct {
		desc string
		env  map[string]string
		want azureAccount
		err  string
	}{
		{"the portal's string", map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https" + suffix + ";EndpointSuffix=core.chinacloudapi.cn"},
			azureAccount{url: "https://a.blob.core.chinacloudapi.cn/", name: "a", key: "k=="}, ""},
		{"an emulator's string", map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=http://127.0.0.1:10000/a;" + suffix},
			azureAccount{url: "http://127.0.0.1:10000/a/", name: "a", key: "k=="}, ""},
		{"a string with a token", map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=https://a.example.org/;SharedAccessSignature=?sv=1&sig=s%3D"},
			azureAccount{url: "https://a.example.org/", sas: "sv=1&sig=s%3D"}, ""},
		{"a token", map[string]string{"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_SAS_TOKEN": "?sig=s"},
			azureAccount{url: "https://a.blob.core.windows.net/", name: "a", sas: "sig=s"}, ""},
		{"an identity", map[string]string{"AZURE_STORAGE_ACCOUNT_NAME": "a"}, azureAccount{url: "https://a.blob.core.windows.net/", name: "a"}, ""},
		{"nothing", nil, azureAccount{}, "want AZURE_STORAGE_CONNECTION_STRING"},
		{"a string without a key", map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a"}, azureAccount{}, "neither AccountKey"},
		{"a string without an account", map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "AccountKey=k"}, azureAccount{}, "no AccountName"},
		{"a string with a token in the address", map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=https://h?sig=s" + suffix}, azureAccount{}, "is no address"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			got, err := findAzureAccount(nil, func(name string) string { return test.env[name] })
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}
