package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"gocloud.dev/blob"
)

const (
	// partBytes is the piece in which a cloud gets a big file, and up to which a file is
	// one request. A cloud takes 10,000 pieces and more: files of 80 GB.
	partBytes = 8 << 20

	// partsAtOnce bounds, with partBytes, what one Put holds of its content: 24 MiB with
	// the piece that is being filled. More are faster only if the network is not.
	partsAtOnce = 2

	// cloudTries is how often a cloud's own client sends one request, so that a lost
	// packet is no error. Longer outages are not its affair.
	cloudTries = 3

	// cloudOpenTimeout bounds looking for a container and making it.
	cloudOpenTimeout = 30 * time.Second

	// maxCloudTTL is how long a link of Amazon S3 and Google Cloud Storage may work, and
	// what Azure signs for an identity.
	maxCloudTTL = 7 * 24 * time.Hour
)

// cloud is what a store in a cloud needs beyond the portable API.
type cloud interface {
	// sign makes a link to the object key that works until a time.
	sign(ctx context.Context, key string, until time.Time) (string, error)

	// pin lets a read fail with FailedPrecondition where the object is not the one that
	// has these attributes.
	pin(*blob.Attributes) *blob.ReaderOptions

	// once is where and how a write is tried once: a second try could meet what the first
	// one, whose answer was lost, has written.
	once(context.Context, *blob.WriterOptions) (context.Context, *blob.Bucket)

	// missing reports whether err says that the container is not there, or cannot be told
	// from that. gocloud says NotFound then, as for an object.
	missing(err error) bool

	// holds returns an error if the container is not there, for clouds that do not say
	// so when an object is not found.
	holds(context.Context) error
}

// parameters are those of a store's URL: each known, and given once.
type parameters map[string]string

func parseParameters(u *url.URL, known ...string) (parameters, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("store URL: the query cannot be read")
	}
	found := parameters{}
	for _, name := range known {
		if values, ok := query[name]; ok {
			if len(values) != 1 || values[0] == "" {
				return nil, fmt.Errorf("store URL: want one value of %s", name)
			}
			found[name] = values[0]
			delete(query, name)
		}
	}
	for name := range query {
		return nil, fmt.Errorf("store URL: unknown parameter %q: %s:// knows %q", name, u.Scheme, known)
	}
	return found, nil
}

// flag is a parameter that is true or false.
func (p parameters) flag(name string, otherwise bool) (bool, error) {
	if p[name] == "" {
		return otherwise, nil
	}
	value, err := strconv.ParseBool(p[name])
	if err != nil {
		return false, fmt.Errorf("store URL: %s is true or false", name)
	}
	return value, nil
}

// endpointParameter is where a server answers that is not the cloud's own.
const endpointParameter = "endpoint"

// endpoint returns the parameter of that name, which may hold no password and no query.
func (p parameters) endpoint() (string, error) {
	text := p[endpointParameter]
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("store URL: endpoint is no http:// or https:// address, without password and query")
	}
	return text, nil
}

// checkContainer refuses a URL of which parts would be ignored.
func checkContainer(u *url.URL) error {
	if u.User != nil || u.Opaque != "" || u.Port() != "" || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return fmt.Errorf("store URL: want %s://name, and nothing after the name but parameters", u.Scheme)
	}
	return nil
}
