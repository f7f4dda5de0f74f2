// Where the system has no flock nothing keeps two processes from one directory.

//go:build !unix

package driver

import (
	"os"

	"github.com/kith-io/kith/internal/base/files"
)

func lockDirectory(path string) (*os.File, error) {
	return files.Lock(path, 0o600)
}
