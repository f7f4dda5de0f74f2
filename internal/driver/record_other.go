// Where the system has no flock nothing keeps two processes from one directory.

//go:build !unix

package driver

import "os"

func lockDirectory(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

func syncDirectory(string) error { return nil }
