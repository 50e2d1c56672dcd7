package notebook

// Limits bounds what is taken from one executed notebook. A field that is not
// positive means its default.
type Limits struct {
	MaxBytes      int64 // of the executed notebook as JSON
	MaxOutputs    int   // in the result, after adjacent streams are merged
	MaxTextBytes  int64 // of one stream or one textual or JSON representation
	MaxErrorBytes int64 // of an exception's message, and again of its traceback
	MaxBlobs      int   // images and other binary parts
	MaxBlobBytes  int64 // of one of them, decoded
}

// The defaults of Limits.
const (
	// DefaultMaxBytes leaves room for a 25 MiB request as source and for 8 MiB
	// of output of which every byte became a JSON escape of six.
	DefaultMaxBytes int64 = 128 << 20

	// DefaultMaxOutputs is more than anybody reads, and keeps a reply that
	// consists of tiny outputs at a few MiB of JSON.
	DefaultMaxOutputs = 10_000

	// DefaultMaxTextBytes is a run's default cap on all its output, so that a
	// single print may use all of it.
	DefaultMaxTextBytes int64 = 8 << 20

	// DefaultMaxErrorBytes holds a traceback of a thousand frames; an exception
	// whose message is longer carries data, not a message.
	DefaultMaxErrorBytes int64 = 64 << 10

	// DefaultMaxBlobs is the default for files returned from one run: every one
	// of them becomes an object in the store and an entry in the reply.
	DefaultMaxBlobs = 200

	// DefaultMaxBlobBytes lets a poster-sized plot pass if the operator raised
	// the cap on output, and keeps one image from filling a reply.
	DefaultMaxBlobBytes int64 = 32 << 20
)

const (
	// MaxCells bounds the cells of a notebook, a caller's own and an executed
	// one: the longest that people write by hand have some hundreds.
	MaxCells = 10_000

	// maxMediaTypes bounds the representations in one MIME bundle; the richest
	// that libraries send have about eight.
	maxMediaTypes = 32

	// readPerOutput bounds how many outputs are looked at for each that the result
	// may hold: enough to find the error after a flood, too few for a notebook of
	// millions of tiny outputs to hold a core for half a minute.
	readPerOutput = 100

	// maxMembers bounds the fields of a notebook, a cell or their metadata, of
	// which nbformat knows five: what is kept of each costs memory.
	maxMembers = 1_000

	// maxDisplayID bounds a display's id, in bytes: IPython's have 32, and an id
	// that is passed on with each update is no place for data.
	maxDisplayID = 256

	// maxDropped bounds Result.Dropped, so that a list of what is wrong with a
	// hostile notebook is not itself a flood; the last entry counts the rest.
	maxDropped = 100
)

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxBytes:      positive(l.MaxBytes, DefaultMaxBytes),
		MaxOutputs:    positive(l.MaxOutputs, DefaultMaxOutputs),
		MaxTextBytes:  positive(l.MaxTextBytes, DefaultMaxTextBytes),
		MaxErrorBytes: positive(l.MaxErrorBytes, DefaultMaxErrorBytes),
		MaxBlobs:      positive(l.MaxBlobs, DefaultMaxBlobs),
		MaxBlobBytes:  positive(l.MaxBlobBytes, DefaultMaxBlobBytes),
	}
}

func positive[T int | int64](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}
