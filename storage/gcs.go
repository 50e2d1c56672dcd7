package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	gcloud "cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// gcsPartBytes is what Google's client takes by itself: one piece is under way at a time,
// and each is answered before the next.
const gcsPartBytes = 16 << 20

// gcs is a bucket of Google Cloud Storage.
type gcs struct {
	client   *gcloud.Client
	name     string
	endpoint *url.URL // nil for Google's own
	bucket   *blob.Bucket
	signer   *gcsSigner // nil without an account to sign for
}

// openGCS opens gs://bucket, and makes the bucket if it is missing.
func openGCS(ctx context.Context, u *url.URL, getenv func(string) string) (opened, error) {
	if err := checkContainer(u); err != nil {
		return opened{}, err
	}
	if u.Hostname() == "" {
		return opened{}, errors.New("store URL: want gs://bucket")
	}
	p, err := parseParameters(u, endpointParameter, "project")
	if err != nil {
		return opened{}, err
	}
	g := &gcs{name: u.Hostname()}
	if g.endpoint, err = gcsEndpoint(p, getenv); err != nil {
		return opened{}, err
	}
	account, err := findGoogleAccount(ctx, g.endpoint != nil, getenv)
	if err != nil {
		return opened{}, fmt.Errorf("gs: %w", shown(err))
	}
	options := []option.ClientOption{option.WithTokenSource(account.tokens)}
	if g.endpoint != nil {
		options = []option.ClientOption{option.WithoutAuthentication(), option.WithEndpoint(g.endpoint.JoinPath("storage/v1/").String())}
	}
	if g.client, err = gcloud.NewClient(ctx, options...); err != nil {
		return opened{}, fmt.Errorf("gs: %w", shown(err))
	}
	g.client.SetRetry(gcloud.WithMaxAttempts(cloudTries))
	if g.signer, err = newGCSSigner(ctx, account); err != nil {
		return opened{}, fmt.Errorf("gs: %w", shown(err))
	}
	project := cmp.Or(p["project"], getenv("GOOGLE_CLOUD_PROJECT"), getenv("GCLOUD_PROJECT"), getenv("CLOUDSDK_CORE_PROJECT"), account.project)
	if err := g.makeBucket(ctx, project); err != nil {
		return opened{}, fmt.Errorf("gs: bucket %q: %w", g.name, shown(err))
	}
	if g.bucket, err = gcsblob.OpenBucket(ctx, nil, g.name, &gcsblob.Options{Client: g.client}); err != nil {
		return opened{}, fmt.Errorf("gs: %w", shown(err))
	}
	return opened{bucket: g.bucket, cloud: g, signs: g.signer != nil, partBytes: gcsPartBytes}, nil
}

// gcsEndpoint is where an emulator answers, or nil.
func gcsEndpoint(p parameters, getenv func(string) string) (*url.URL, error) {
	text, err := p.endpoint()
	if err != nil {
		return nil, err
	}
	if text == "" {
		if text = getenv("STORAGE_EMULATOR_HOST"); text == "" {
			return nil, nil
		}
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, errors.New("gs: STORAGE_EMULATOR_HOST is no address")
	}
	return u, nil
}

// makeBucket makes the bucket if it is missing: without access lists for each object,
// and never public. Credentials that may not look are taken: they may still read and
// write, which a probe finds out.
func (g *gcs) makeBucket(ctx context.Context, project string) error {
	ctx, cancel := context.WithTimeout(ctx, cloudOpenTimeout)
	defer cancel()
	_, err := g.client.Bucket(g.name).Attrs(ctx)
	if gcsStatus(err) == http.StatusForbidden {
		return nil
	}
	if !errors.Is(err, gcloud.ErrBucketNotExist) {
		return err
	}
	if project == "" {
		return errors.New("it is missing, and cannot be made without a project: gs://bucket?project=…, or GOOGLE_CLOUD_PROJECT")
	}
	err = g.client.Bucket(g.name).Create(ctx, project, &gcloud.BucketAttrs{
		UniformBucketLevelAccess: gcloud.UniformBucketLevelAccess{Enabled: true},
		PublicAccessPrevention:   gcloud.PublicAccessPreventionEnforced,
	})
	if err == nil {
		return nil
	}
	if _, found := g.client.Bucket(g.name).Attrs(ctx); found == nil {
		return nil // made by another service meanwhile
	}
	return fmt.Errorf("it is missing, and cannot be made: %w", err)
}

func gcsStatus(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// sign makes a V4 signed URL.
func (g *gcs) sign(ctx context.Context, key string, until time.Time) (string, error) {
	options := &gcloud.SignedURLOptions{
		Scheme:         gcloud.SigningSchemeV4,
		Method:         http.MethodGet,
		Expires:        until,
		GoogleAccessID: g.signer.account,
		SignBytes:      func(b []byte) ([]byte, error) { return g.signer.sign(ctx, b) },
		Style:          gcloud.PathStyle(),
	}
	if g.endpoint != nil {
		options.Hostname = g.endpoint.Host
		options.Insecure = g.endpoint.Scheme == "http"
	}
	return gcloud.SignedURL(g.name, key, options)
}

func (*gcs) pin(a *blob.Attributes) *blob.ReaderOptions {
	var attributes gcloud.ObjectAttrs
	known := a.As(&attributes)
	return &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var object **gcloud.ObjectHandle
		if !known || !as(&object) {
			return errors.New("gcsblob did not give its object")
		}
		*object = (*object).If(gcloud.Conditions{GenerationMatch: attributes.Generation})
		return nil
	}}
}

func (g *gcs) once(ctx context.Context, o *blob.WriterOptions) (context.Context, *blob.Bucket) {
	o.BeforeWrite = func(as func(any) bool) error {
		var object **gcloud.ObjectHandle
		if !as(&object) {
			return errors.New("gcsblob did not give its object")
		}
		*object = (*object).Retryer(gcloud.WithPolicy(gcloud.RetryNever))
		return nil
	}
	return ctx, g.bucket
}

// missing: gocloud says NotFound if access is denied, too.
func (*gcs) missing(err error) bool {
	return errors.Is(err, gcloud.ErrBucketNotExist) || gcsStatus(err) == http.StatusForbidden
}

// holds: the client says that an object is not there, where the bucket is not.
func (g *gcs) holds(ctx context.Context) error {
	_, err := g.client.Bucket(g.name).Attrs(ctx)
	if gcsStatus(err) == http.StatusForbidden {
		return nil // it may not look
	}
	return err
}
