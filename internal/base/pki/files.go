// Files of certificates and keys: their names, their modes, and throw-away ones.

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/files"
)

// ErrThere is wrapped by Write's error about a file that it may not replace.
var ErrThere = errors.New("is there already")

// Suffixes of the two files of a Pair, and the name of an authority's.
const (
	CertSuffix = ".crt"
	KeySuffix  = ".key"
	CAName     = "ca"
)

// GoodName returns an error for a name that no file can have.
func GoodName(name string) error {
	if name == "" || len(name) > 64 || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%q is no name for a file of a certificate", name)
	}
	return nil
}

// MaxFile bounds a file with certificates or a key that is read, in bytes.
const MaxFile = 1 << 20

// Exposed reports whether others than its owner can read or replace a file, and its mode. One that is not there is not
// exposed.
func Exposed(file string) (mode os.FileMode, exposed bool) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, false
	}
	mode = info.Mode().Perm()
	return mode, mode&0o077 != 0
}

// Paths returns where a Pair of a name lies.
func Paths(dir, name string) (cert, key string) {
	return filepath.Join(dir, name+CertSuffix), filepath.Join(dir, name+KeySuffix)
}

// Write writes the Pair of a name into dir, which is made if need be, for its owner only: the certificate readable for
// all, the key for its owner. Files that are there are an error, ErrThere, unless force is set; then each is replaced
// at once, so that a reader meanwhile gets the old one or the new one.
func (p Pair) Write(dir, name string, force bool) error {
	if err := GoodName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cert, key := Paths(dir, name)
	if !force {
		for _, path := range []string{cert, key} {
			switch _, err := os.Lstat(path); {
			case err == nil:
				return fmt.Errorf("%s %w", path, ErrThere)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
	}
	// The key first: a node that finds a certificate without its key goes on with what it has.
	if err := writeFile(key, p.Key, 0o600, force); err != nil {
		return err
	}
	return writeFile(cert, p.Cert, 0o644, force)
}

// writeFile writes a new file, or replaces one as a whole. No link is followed.
func writeFile(path string, text []byte, mode fs.FileMode, force bool) error {
	if force {
		return files.Replace(path, text, mode)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// Read reads the Pair of a name.
func Read(dir, name string) (p Pair, err error) {
	cert, key := Paths(dir, name)
	if p.Cert, err = files.Read(cert, MaxFile); err == nil {
		p.Key, err = files.Read(key, MaxFile)
	}
	return p, err
}

// ThrowAway makes an authority with a key that is kept nowhere, and a certificate for each of the nodes, in dir, for a
// day.
func ThrowAway(dir string, uris, hosts []string, nodes ...string) error {
	const valid = 24 * time.Hour
	ca, err := NewCA("throw-away", valid)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, CAName+CertSuffix), ca.Pair().Cert, 0o644, false); err != nil {
		return err
	}
	for _, name := range nodes {
		p, err := ca.Issue(Request{Name: name, URIs: uris, Hosts: hosts, Until: ca.Expires()})
		if err == nil {
			err = p.Write(dir, name, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
