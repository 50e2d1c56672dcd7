package storage

import (
	"context"
	"fmt"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// RemoveContainer removes the container or bucket of s, which must be empty.
func RemoveContainer(ctx context.Context, s *Store) error {
	switch c := s.cloud.(type) {
	case *azure:
		_, err := c.container.Delete(ctx, nil)
		return err
	case *s3:
		_, err := c.client.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: &c.name})
		return err
	case *gcs:
		return c.client.Bucket(c.name).Delete(ctx)
	default:
		return fmt.Errorf("%T", c)
	}
}

// UnfinishedUploads are the uploads in pieces whose pieces a bucket of S3 still has.
func UnfinishedUploads(ctx context.Context, s *Store) (int, error) {
	c, ok := s.cloud.(*s3)
	if !ok {
		return 0, nil // the other clouds forget them
	}
	list, err := c.client.ListMultipartUploads(ctx, &awss3.ListMultipartUploadsInput{Bucket: &c.name})
	if err != nil {
		return 0, err
	}
	return len(list.Uploads), nil
}
