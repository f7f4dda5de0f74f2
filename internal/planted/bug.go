// Bug: one mutation of the real source and the net that has to catch it.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// bug is one planted mutation. It is planted by replacing Old, which stands exactly once in File, by New; it has to be
// caught either by the storm (Seeds) or by the tests that match Run in Package.
type bug struct {
	Name string // short and unique: letters, digits and hyphens
	File string // relative to the module's root, with slashes
	Old  string // source text that occurs exactly once in File; whole lines keep the list readable
	New  string // what stands there instead; it must compile

	// Seeds is how many storm seeds, from First on (1 if zero), may be used to find it. Zero when a test has to.
	Seeds int
	First uint64

	// Package and Run name the tests that have to fail when Seeds is zero, as in go test -run Run Package.
	Package string
	Run     string
}

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check returns what is wrong with the entry itself.
func (b *bug) check() error {
	switch {
	case !namePattern.MatchString(b.Name):
		return fmt.Errorf("bug %q: the name must be lower case words with hyphens", b.Name)
	case !filepath.IsLocal(filepath.FromSlash(b.File)):
		return fmt.Errorf("bug %s: file %q is not inside the module", b.Name, b.File)
	case b.Old == "" || b.Old == b.New:
		return fmt.Errorf("bug %s: nothing would change", b.Name)
	case b.Seeds < 0 || b.Seeds == 0 && (b.Package == "" || b.Run == ""):
		return fmt.Errorf("bug %s: needs Seeds, or Package and Run", b.Name)
	case b.Seeds > 0 && b.Package+b.Run != "":
		return fmt.Errorf("bug %s: has Seeds and a test: one of them", b.Name)
	}
	return nil
}

// checkAll returns the first thing that is wrong with a list.
func checkAll(list []bug) error {
	if len(list) == 0 {
		return fmt.Errorf("the list of planted bugs is empty")
	}
	names := map[string]bool{}
	for i := range list {
		if err := list[i].check(); err != nil {
			return err
		}
		if names[list[i].Name] {
			return fmt.Errorf("two bugs are named %s", list[i].Name)
		}
		names[list[i].Name] = true
	}
	return nil
}

// mutate returns the text of the bug's file with the bug in it.
func (b *bug) mutate(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.File)))
	if err != nil {
		return nil, fmt.Errorf("bug %s: %w", b.Name, err)
	}
	if n := strings.Count(string(text), b.Old); n != 1 {
		return nil, fmt.Errorf("bug %s: its old text stands %d times in %s, must stand exactly once:\n%s",
			b.Name, n, b.File, b.Old)
	}
	return []byte(strings.Replace(string(text), b.Old, b.New, 1)), nil
}
