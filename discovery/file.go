// File: a list of targets in a file that is read anew at each look-up.

package discovery

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kith-io/kith/internal/base/files"
)

// MaxFile is the largest file of targets in bytes.
const MaxFile = 256 << 10

// ErrPartialFile is wrapped by the error of a file that seems to be written at this moment: it is empty, its last line
// does not end, or it changed while it was read.
var ErrPartialFile = errors.New("discovery: the file is being written")

type file string

// File returns a Discovery that reads a file at each look-up: a target a line, as ParseTarget reads it; empty lines and
// what follows a # do not count. Replace the file by renaming a new one over it. One that is written in place is
// recognised in most cases (ErrPartialFile). A line that is no target fails the look-up, which names it: a part of a
// list is none. A file of comments alone says that there is nobody.
func File(path string) (Discovery, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: the file has no name", ErrBadConfig)
	}
	return file(path), nil
}

// Lookup reads the file.
func (f file) Lookup(ctx context.Context) ([]Target, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	list, err := parseFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", string(f), err)
	}
	return list, nil
}

// read returns the bytes of the file, which did not change meanwhile as far as that shows.
func (f file) read() ([]byte, error) {
	r, err := files.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	before, err := r.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, err
	}
	after, err := r.Stat()
	switch {
	case err != nil:
		return nil, err
	case len(text) > MaxFile:
		return nil, fmt.Errorf("%s has more than %d bytes", string(f), MaxFile)
	case before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) || int64(len(text)) != after.Size():
		return nil, fmt.Errorf("%w: %s changed while it was read", ErrPartialFile, string(f))
	}
	return text, nil
}

// parseFile reads the lines of a file.
func parseFile(text []byte) ([]Target, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrPartialFile)
	}
	if text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("%w: its last line does not end", ErrPartialFile)
	}
	var list []Target
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, MaxFile+1)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := bytes.Cut(lines.Bytes(), []byte("#"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		t, err := ParseTarget(string(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if list = append(list, t); len(list) > MaxTargets {
			return nil, fmt.Errorf("line %d: %w", n, tooMany(len(list)))
		}
	}
	return Normalize(list)
}
