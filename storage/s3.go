package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// s3Region is signed where a server of one's own has no regions.
const s3Region = "us-east-1"

// s3 is a bucket of Amazon S3, or of a server that speaks its protocol.
type s3 struct {
	client *awss3.Client
	name   string
	single *blob.Bucket // of a client that tries once
}

// openS3 opens s3://bucket, and makes the bucket if it is missing.
func openS3(ctx context.Context, u *url.URL, getenv func(string) string) (opened, error) {
	if err := checkContainer(u); err != nil {
		return opened{}, err
	}
	if u.Hostname() == "" {
		return opened{}, errors.New("store URL: want s3://bucket")
	}
	cfg, adjust, err := s3Config(ctx, u, getenv)
	if err != nil {
		return opened{}, err
	}
	s := &s3{client: awss3.NewFromConfig(cfg, adjust), name: u.Hostname()}
	if err := s.makeBucket(ctx, cfg.Region); err != nil {
		return opened{}, fmt.Errorf("s3: bucket %q: %w", s.name, shown(err))
	}
	single := awss3.NewFromConfig(cfg, adjust, func(o *awss3.Options) { o.Retryer = aws.NopRetryer{} })
	options := &s3blob.Options{RequestChecksumCalculation: cfg.RequestChecksumCalculation}
	if s.single, err = s3blob.OpenBucket(ctx, single, s.name, options); err != nil {
		return opened{}, fmt.Errorf("s3: %w", shown(err))
	}
	bucket, err := s3blob.OpenBucket(ctx, s.client, s.name, options)
	if err != nil {
		return opened{}, fmt.Errorf("s3: %w", shown(err))
	}
	return opened{bucket: bucket, cloud: s, signs: true, takesBack: true, partBytes: partBytes}, nil
}

// s3Config reads the URL's parameters and the credentials: those in getenv, else those of
// the SDK's default chain (files, web identity, the machine's role).
func s3Config(ctx context.Context, u *url.URL, getenv func(string) string) (aws.Config, func(*awss3.Options), error) {
	p, err := parseParameters(u, endpointParameter, "region", "path_style")
	if err != nil {
		return aws.Config{}, nil, err
	}
	endpoint, err := p.endpoint()
	if err != nil {
		return aws.Config{}, nil, err
	}
	// Few servers of one's own have a host name for each bucket.
	pathStyle, err := p.flag("path_style", endpoint != "")
	if err != nil {
		return aws.Config{}, nil, err
	}
	options := []func(*config.LoadOptions) error{config.WithRetryMaxAttempts(cloudTries)}
	if id := getenv("AWS_ACCESS_KEY_ID"); id != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(id, getenv("AWS_SECRET_ACCESS_KEY"), getenv("AWS_SESSION_TOKEN"))))
	}
	if region := cmp.Or(p["region"], getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")); region != "" {
		options = append(options, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, nil, fmt.Errorf("s3: configuration: %w", shown(err))
	}
	if cfg.Region == "" && endpoint == "" {
		return aws.Config{}, nil, errors.New("s3: no region: want s3://bucket?region=…, or AWS_REGION")
	}
	cfg.Region = cmp.Or(cfg.Region, s3Region)
	return cfg, func(o *awss3.Options) {
		o.UsePathStyle = pathStyle
		o.APIOptions = append(o.APIOptions, outliveUpload)
		if endpoint == "" {
			return
		}
		o.BaseEndpoint = &endpoint
		// Older servers know nothing of the checksums that the SDK adds of its own accord.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}, nil
}

// outliveUpload lets the request that takes back the parts of an upload be sent although
// the upload's context has ended. Its client has a setting for that, which gocloud does
// not pass on; without it the parts stay, unseen and paid for.
func outliveUpload(stack *middleware.Stack) error {
	if stack.ID() != "AbortMultipartUpload" {
		return nil
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("notebox:outliveUpload",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
			defer cancel()
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}

// makeBucket makes the bucket if it is missing. Credentials that may not look are
// taken: they may still read and write, which a probe finds out.
func (s *s3) makeBucket(ctx context.Context, region string) error {
	ctx, cancel := context.WithTimeout(ctx, cloudOpenTimeout)
	defer cancel()
	_, err := s.client.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: &s.name})
	switch s3Status(err) {
	case http.StatusForbidden:
		// HEAD has no body, so that a wrong key looks as a missing permission.
		return nil
	case http.StatusMovedPermanently:
		return fmt.Errorf("it is in another region than %s", region)
	case http.StatusNotFound:
	default:
		return err
	}
	in := &awss3.CreateBucketInput{Bucket: &s.name}
	if region != s3Region { // which must not be named
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	if _, err := s.client.CreateBucket(ctx, in); err != nil && s3Code(err) != "BucketAlreadyOwnedByYou" {
		return fmt.Errorf("it is missing, and cannot be made: %w", err)
	}
	return nil
}

func s3Status(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

func s3Code(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}

// sign makes a presigned URL. It ends earlier where the credentials are temporary ones.
func (s *s3) sign(ctx context.Context, key string, until time.Time) (string, error) {
	signer := awss3.NewPresignClient(s.client, awss3.WithPresignExpires(time.Until(until)),
		awss3.WithPresignClientFromClientOptions(func(o *awss3.Options) {
			// Else the one who follows the link must ask for a checksum, too.
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}))
	signed, err := signer.PresignGetObject(ctx, &awss3.GetObjectInput{Bucket: &s.name, Key: &key})
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

func (*s3) pin(a *blob.Attributes) *blob.ReaderOptions {
	tag := a.ETag
	return &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var in *awss3.GetObjectInput
		if !as(&in) {
			return errors.New("s3blob did not give its request")
		}
		in.IfMatch = &tag
		return nil
	}}
}

func (s *s3) once(ctx context.Context, _ *blob.WriterOptions) (context.Context, *blob.Bucket) {
	return ctx, s.single
}

func (*s3) missing(err error) bool {
	return s3Code(err) == "NoSuchBucket" || s3Status(err) == http.StatusMovedPermanently
}

// holds: the answer to HEAD is the same for an object and for a bucket that is missing.
func (s *s3) holds(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: &s.name})
	if s3Status(err) == http.StatusForbidden {
		return nil // it may not look
	}
	return err
}
