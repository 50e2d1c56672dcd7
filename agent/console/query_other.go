//go:build !unix

package console

import "os"

// Query returns nothing: terminals are not asked here.
func Query(*os.File) string { return "" }
