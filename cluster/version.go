// Version: how the versions of the application that members run compare, for rolling updates.

package cluster

import (
	"cmp"
	"fmt"
	"strings"
)

// MaxAppVersion is how many bytes Member.AppVersion may have.
const MaxAppVersion = 64

// appVersion is a parsed version: major, minor, patch, commits since the tag, and what follows.
type appVersion struct {
	numbers [4]uint64
	rest    string
}

// CheckVersion returns what is wrong with an application version, or nil: it is empty, too long, has more than three
// numbers, or has several of which one is no number.
func CheckVersion(v string) error {
	if len(v) > MaxAppVersion {
		return fmt.Errorf("version %q has %d bytes, at most %d", v, len(v), MaxAppVersion)
	}
	_, err := parseVersion(v)
	return err
}

// CompareVersions orders two application versions, negative when a is the older: by major, minor, patch and the
// commits since the tag ("1.2.3-14-gabc"), each missing one zero; then by the rest as text, where none is newer than
// some (1.2.3 after 1.2.3-RC1). What CheckVersion refuses compares as text, below every version; the empty one is the
// oldest of all. It never fails.
func CompareVersions(a, b string) int {
	x, xErr := parseVersion(a)
	y, yErr := parseVersion(b)
	switch {
	case xErr != nil && yErr != nil:
		return strings.Compare(a, b)
	case xErr != nil:
		return -1
	case yErr != nil:
		return 1
	}
	for i := range x.numbers {
		if c := cmp.Compare(x.numbers[i], y.numbers[i]); c != 0 {
			return c
		}
	}
	switch {
	case x.rest == y.rest:
		return 0
	case x.rest == "":
		return 1
	case y.rest == "":
		return -1
	}
	return strings.Compare(x.rest, y.rest)
}

func parseVersion(v string) (out appVersion, err error) {
	if v == "" {
		return out, fmt.Errorf("version is empty")
	}
	head, rest := v, ""
	if i := strings.IndexAny(v, "-+"); i >= 0 {
		head, rest = v[:i], v[i:]
	}
	parts := strings.Split(head, ".")
	if len(parts) > 3 {
		return out, fmt.Errorf("version %q has %d numbers, at most 3", v, len(parts))
	}
	for i, p := range parts {
		n, ok := number(p)
		if !ok && len(parts) == 1 {
			return appVersion{rest: v}, nil // plain text
		}
		if !ok {
			return out, fmt.Errorf("version %q: %q is no number", v, p)
		}
		out.numbers[i] = n
	}
	if rest == "" {
		return out, nil
	}
	out.rest = rest[1:]
	if digits, after, ok := strings.Cut(out.rest, "-"); ok {
		if n, ok := number(digits); ok {
			out.numbers[3], out.rest = n, after
		}
	}
	return out, nil
}

// number reads up to 18 decimal digits.
func number(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
