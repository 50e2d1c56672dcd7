package problem

import "errors"

// Redacted is an error whose text is fit for the log. What it is to
// errors.Is and errors.As is the whole of it.
type Redacted struct {
	Text  string
	Whole error
}

func (e *Redacted) Error() string { return e.Text }
func (e *Redacted) Unwrap() error { return e.Whole }

// Leaf is the cause of a cause … of err.
func Leaf(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
				next = many.Unwrap()[len(many.Unwrap())-1]
			}
		}
		if next == nil {
			return err
		}
		err = next
	}
}
