// Bug: one mutation of the real source and the net that has to catch it.

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// bug is one planted mutation. It has to be caught either by the storm (Seeds) or by the tests that match Run in
// Package.
//
// In names the declaration that it is planted in, wherever that stands in its package, as
// "internal/core/courier.Machine.Tick". What happens there is one of three: Old, a piece of one line which occurs
// exactly once in it, becomes New, compared token by token, so that white space and comments do not matter; Drop takes
// away the only statement that calls a function; Without takes away the only operand of an "and" or "or" that is
// written so.
type bug struct {
	Name    string // short and unique: letters, digits and hyphens
	Rules   string // what it breaks: rules of the checkers and of docs/contributing/model.md, with spaces in between
	In      string // a folder, a dot and a name, or type and method
	Drop    string // the called function as it is written: "m.repeat"
	Without string // the operand as it is written: "l.standing == Present"
	Old     string // at most longest bytes
	New     string // what stands there instead; it must compile

	// Seeds is how many storm seeds, from First on (1 if zero), may be used to find it. Zero when a test has to.
	Seeds int
	First uint64
	// Accounts makes them seeds of `lab accounts`: its storms look closer at where messages go.
	Accounts bool

	// Package and Run name the tests that have to fail when Seeds is zero, as in go test -run Run Package.
	Package string
	Run     string
}

// Bounds of the list: it is for rules, and each entry hangs on one short line.
const (
	mostBugs = 108
	longest  = 100
)

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check returns what is wrong with the entry itself.
func (b *bug) check() error {
	switch {
	case !namePattern.MatchString(b.Name):
		return fmt.Errorf("bug %q: the name must be lower case words with hyphens", b.Name)
	case b.Rules == "":
		return fmt.Errorf("bug %s: names no rule that it breaks", b.Name)
	case b.ways() > 1:
		return fmt.Errorf("bug %s: one of Old, Drop and Without", b.Name)
	case b.ways() == 0 || b.Old != "" && b.Old == b.New:
		return fmt.Errorf("bug %s: nothing would change", b.Name)
	case strings.Contains(b.Old+b.Drop+b.Without, "\n") || len(b.Old+b.Drop+b.Without) > longest:
		return fmt.Errorf("bug %s: is planted in more than one short line", b.Name)
	case b.Seeds < 0 || b.Seeds == 0 && (b.Package == "" || b.Run == ""):
		return fmt.Errorf("bug %s: needs Seeds, or Package and Run", b.Name)
	case b.Accounts && b.Seeds == 0:
		return fmt.Errorf("bug %s: Accounts is of Seeds", b.Name)
	case b.Seeds > 0 && b.Package+b.Run != "":
		return fmt.Errorf("bug %s: has Seeds and a test: one of them", b.Name)
	}
	return nil
}

// verb is the verb of the node command with the seeds that have to find it.
func (b *bug) verb() string {
	if b.Accounts {
		return "accounts"
	}
	return "storm"
}

// net says what has to catch a bug.
func (b *bug) net() string {
	if b.Seeds > 0 {
		return b.verb()
	}
	return "test " + b.Package + " " + b.Run
}

// checkAll returns the first thing that is wrong with a list.
func checkAll(list []bug) error {
	if len(list) == 0 {
		return fmt.Errorf("the list of planted bugs is empty")
	}
	if len(list) > mostBugs {
		return fmt.Errorf("%d planted bugs, at most %d", len(list), mostBugs)
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

// ways counts what the bug says is to happen.
func (b *bug) ways() (n int) {
	for _, way := range []string{b.Old, b.Drop, b.Without} {
		if way != "" {
			n++
		}
	}
	return n
}

// mutate returns the file that the bug is planted in, relative to the root, and its text with the bug.
func (b *bug) mutate(root string) (file string, text []byte, err error) {
	p, err := find(root, b.In)
	if err != nil {
		return "", nil, fmt.Errorf("bug %s: %w", b.Name, err)
	}
	var found []span
	with := []string{b.New}
	switch {
	case b.Drop != "":
		found = p.drops(b.Drop)
	case b.Without != "":
		found, with = p.operands(b.Without)
	default:
		found = p.where(b.Old)
	}
	if len(found) != 1 {
		return "", nil, fmt.Errorf("bug %s: what it changes stands %d times in %s, must stand exactly once: %s",
			b.Name, len(found), b.In, b.Old+b.Drop+b.Without)
	}
	return p.file, p.replace(found[0], with[0]), nil
}
