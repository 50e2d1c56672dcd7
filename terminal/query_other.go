//go:build !unix

package terminal

import "os"

// Query returns nothing: terminals are not asked here.
func Query(*os.File) string { return "" }
