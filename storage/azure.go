package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azblobblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
)

// azure is a container of Azure Blob Storage.
type azure struct {
	container *container.Client
	name      string
	protocol  sas.Protocol // of links
	bucket    *blob.Bucket
	key       *service.SharedKeyCredential // nil without an account key
	delegated *delegation                  // nil without an identity
}

// openAzure opens azblob://container, and makes the container if it is missing.
func openAzure(ctx context.Context, u *url.URL, getenv func(string) string) (opened, error) {
	if err := checkContainer(u); err != nil {
		return opened{}, err
	}
	p, err := parseParameters(u, endpointParameter)
	if err != nil {
		return opened{}, err
	}
	a := &azure{name: cmp.Or(u.Hostname(), getenv("AZURE_BLOB_CONTAINER_NAME")), protocol: sas.ProtocolHTTPS}
	if a.name == "" {
		return opened{}, errors.New("store URL: want azblob://container, or AZURE_BLOB_CONTAINER_NAME")
	}
	account, err := findAzureAccount(p, getenv)
	if err != nil {
		return opened{}, err
	}
	services, err := a.connect(account)
	if err != nil {
		return opened{}, fmt.Errorf("azblob: %w", shown(err))
	}
	a.container = services.NewContainerClient(a.name)
	if strings.HasPrefix(services.URL(), "http:") {
		a.protocol = sas.ProtocolHTTPSandHTTP
	}
	if err := a.makeContainer(ctx); err != nil {
		return opened{}, fmt.Errorf("azblob: container %q: %w", a.name, shown(err))
	}
	if a.bucket, err = azureblob.OpenBucket(ctx, a.container, nil); err != nil {
		return opened{}, fmt.Errorf("azblob: %w", shown(err))
	}
	return opened{name: "azblob://" + a.name, bucket: a.bucket, cloud: a, signs: a.signs(), partBytes: partBytes}, nil
}

// connect makes a client with the best of the account's credentials.
func (a *azure) connect(account azureAccount) (services *service.Client, err error) {
	options := &service.ClientOptions{ClientOptions: policy.ClientOptions{
		Retry:     policy.RetryOptions{MaxRetries: cloudTries - 1},
		Transport: account.transport,
	}}
	switch {
	case account.key != "":
		if a.key, err = service.NewSharedKeyCredential(account.name, account.key); err != nil {
			return nil, errors.New("the account key is not base64") // the error could quote it
		}
		return service.NewClientWithSharedKeyCredential(account.url, a.key, options)
	case account.sas != "":
		return service.NewClientWithNoCredential(account.url+"?"+account.sas, options)
	case account.identity != nil:
		services, err = service.NewClient(account.url, account.identity, options)
	default:
		identity, found := azidentity.NewDefaultAzureCredential(nil)
		if found != nil {
			return nil, found
		}
		services, err = service.NewClient(account.url, identity, options)
	}
	a.delegated = &delegation{services: services}
	return services, err
}

// makeContainer makes the container if it is missing. Credentials that may neither
// look nor make are taken: they may still read and write, which a probe finds out.
func (a *azure) makeContainer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cloudOpenTimeout)
	defer cancel()
	_, err := a.container.GetProperties(ctx, nil)
	if bloberror.HasCode(err, bloberror.ContainerNotFound) || azureStatus(err) == http.StatusNotFound {
		if _, err = a.container.Create(ctx, nil); err != nil {
			if bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
				return nil // made by another service meanwhile
			}
			return fmt.Errorf("it is missing, and cannot be made: %w", err)
		}
	}
	if bloberror.HasCode(err, bloberror.AuthorizationPermissionMismatch, bloberror.AuthorizationResourceTypeMismatch, bloberror.InsufficientAccountPermissions) {
		return nil
	}
	return err
}

func azureStatus(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

func (a *azure) signs() bool { return a.key != nil || a.delegated != nil }

// sign makes a service SAS with the account's key, or a user delegation SAS. It gives one
// blob, for reading. The start is left open: the clocks of two machines differ.
func (a *azure) sign(ctx context.Context, key string, until time.Time) (string, error) {
	client := a.container.NewBlobClient(key)
	values := sas.BlobSignatureValues{
		Protocol:      a.protocol,
		ExpiryTime:    until.UTC(),
		Permissions:   (&sas.BlobPermissions{Read: true}).String(),
		ContainerName: a.name,
		BlobName:      key,
	}
	var query sas.QueryParameters
	var err error
	if a.key != nil {
		query, err = values.SignWithSharedKey(a.key)
	} else {
		var credential *service.UserDelegationCredential
		if credential, err = a.delegated.until(ctx, until); err == nil {
			query, err = values.SignWithUserDelegation(credential)
		}
	}
	if err != nil {
		return "", err
	}
	return client.URL() + "?" + query.Encode(), nil
}

func (*azure) pin(a *blob.Attributes) *blob.ReaderOptions {
	tag := azcore.ETag(a.ETag)
	return &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var options *azblobblob.DownloadStreamOptions
		if !as(&options) {
			return errors.New("azureblob did not give its options")
		}
		options.AccessConditions = &azblobblob.AccessConditions{
			ModifiedAccessConditions: &azblobblob.ModifiedAccessConditions{IfMatch: &tag},
		}
		return nil
	}}
}

func (a *azure) once(ctx context.Context, _ *blob.WriterOptions) (context.Context, *blob.Bucket) {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), a.bucket
}

func (*azure) missing(err error) bool {
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return false
	}
	return azureStatus(err) == 0 || bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted, bloberror.ResourceNotFound)
}

func (*azure) holds(context.Context) error { return nil }

// delegation keeps the key that Azure gives an identity to sign links with.
type delegation struct {
	services *service.Client
	mu       sync.Mutex
	key      *service.UserDelegationCredential
	expires  time.Time
}

// until returns a key that works until a time, or as long as Azure gives one.
func (d *delegation) until(ctx context.Context, t time.Time) (*service.UserDelegationCredential, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key != nil && !d.expires.Before(t) {
		return d.key, nil
	}
	now := time.Now().UTC()
	expires := now.Add(maxCloudTTL)
	start, end := now.Add(-clockSkew).Format(sas.TimeFormat), expires.Format(sas.TimeFormat)
	key, err := d.services.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
	if err != nil {
		return nil, fmt.Errorf("key for links: %w", err)
	}
	d.key, d.expires = key, expires
	return key, nil
}

// clockSkew is by how much this machine's clock may be ahead of the cloud's.
const clockSkew = 5 * time.Minute
