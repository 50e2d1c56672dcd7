package storage

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"cloud.google.com/go/compute/metadata"
	gcloud "cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/iamcredentials/v1"
	"google.golang.org/api/option"
)

// googleAccount is whom this service is to Google.
type googleAccount struct {
	tokens     oauth2.TokenSource // nil for an emulator
	email      string             // of a service account, or empty
	privateKey *rsa.PrivateKey    // nil if IAM signs
	project    string
	iam        string // where IAM answers, in tests
}

// findGoogleAccount reads GOOGLE_APPLICATION_CREDENTIALS, else what the machine has. For
// an emulator the file gives the key of links alone, and may be missing.
func findGoogleAccount(ctx context.Context, emulated bool, getenv func(string) string) (googleAccount, error) {
	var found *google.Credentials
	var err error
	file := getenv("GOOGLE_APPLICATION_CREDENTIALS")
	switch {
	case file != "":
		content, failed := os.ReadFile(file)
		if failed != nil {
			return googleAccount{}, fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", failed)
		}
		if emulated {
			return parseGoogleAccount(content)
		}
		// The file is of whoever runs this service: any type of credentials is taken.
		var kind struct{ Type google.CredentialsType }
		if err = json.Unmarshal(content, &kind); err == nil {
			found, err = google.CredentialsFromJSONWithTypeAndParams(ctx, content, kind.Type, google.CredentialsParams{Scopes: googleScopes()})
		}
		if err != nil { // not wrapped: it could quote the file
			return googleAccount{}, errors.New("GOOGLE_APPLICATION_CREDENTIALS: the file holds no credentials")
		}
	case emulated:
		return googleAccount{}, nil
	default:
		if found, err = google.FindDefaultCredentials(ctx, googleScopes()...); err != nil {
			return googleAccount{}, fmt.Errorf("no credentials: set GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
	}
	account, err := parseGoogleAccount(found.JSON)
	if err != nil {
		return googleAccount{}, err
	}
	account.tokens = found.TokenSource
	account.project = cmp.Or(account.project, found.ProjectID)
	if account.email == "" && metadata.OnGCE() {
		account.email, _ = metadata.NewClient(nil).EmailWithContext(ctx, "") // without it, no links of Google's
	}
	return account, nil
}

// googleScopes are for the bucket, for making it, and for IAM to sign.
func googleScopes() []string {
	return []string{gcloud.ScopeFullControl, iamcredentials.CloudPlatformScope}
}

// parseGoogleAccount takes from a credentials file what links need. Its errors do not
// quote the file.
func parseGoogleAccount(content []byte) (googleAccount, error) {
	if len(content) == 0 {
		return googleAccount{}, nil
	}
	var file struct {
		Type             string `json:"type"`
		Email            string `json:"client_email"`
		PrivateKey       string `json:"private_key"`
		Project          string `json:"project_id"`
		ImpersonationURL string `json:"service_account_impersonation_url"`
	}
	if json.Unmarshal(content, &file) != nil {
		return googleAccount{}, errors.New("the credentials file is not JSON")
	}
	account := googleAccount{email: file.Email, project: file.Project}
	if account.email == "" && file.ImpersonationURL != "" { // …/serviceAccounts/EMAIL:generateAccessToken
		account.email, _, _ = strings.Cut(path.Base(file.ImpersonationURL), ":")
	}
	if file.PrivateKey == "" {
		return account, nil
	}
	block, _ := pem.Decode([]byte(file.PrivateKey))
	if block == nil {
		return googleAccount{}, errors.New("the private key in the credentials file is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return googleAccount{}, errors.New("the private key in the credentials file is no RSA key")
	}
	account.privateKey = private
	return account, nil
}

// gcsSigner signs links as a service account: with its key, or by IAM's signBlob, for
// which the account needs the role "Service Account Token Creator" on itself.
type gcsSigner struct {
	account string
	key     *rsa.PrivateKey
	iam     *iamcredentials.Service
}

// newGCSSigner returns nil if there is no account to sign for.
func newGCSSigner(ctx context.Context, a googleAccount) (*gcsSigner, error) {
	if a.email == "" || a.privateKey == nil && a.tokens == nil {
		return nil, nil
	}
	s := &gcsSigner{account: a.email, key: a.privateKey}
	if s.key != nil {
		return s, nil
	}
	options := []option.ClientOption{option.WithTokenSource(a.tokens)}
	if a.iam != "" {
		options = append(options, option.WithEndpoint(a.iam))
	}
	var err error
	if s.iam, err = iamcredentials.NewService(ctx, options...); err != nil {
		return nil, fmt.Errorf("IAM: %w", err)
	}
	return s, nil
}

func (s *gcsSigner) sign(ctx context.Context, content []byte) ([]byte, error) {
	if s.key != nil {
		sum := sha256.Sum256(content)
		return rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	}
	request := &iamcredentials.SignBlobRequest{Payload: base64.StdEncoding.EncodeToString(content)}
	reply, err := s.iam.Projects.ServiceAccounts.SignBlob("projects/-/serviceAccounts/"+s.account, request).Context(ctx).Do()
	if err != nil {
		return nil, fmt.Errorf("IAM signBlob: %w", err)
	}
	return base64.StdEncoding.DecodeString(reply.SignedBlob)
}
