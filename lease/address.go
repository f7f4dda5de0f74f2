// Address: a lease as one line of text, as the node binary and its configuration file have it.

package lease

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Address is a lease as one line: scheme://host/path?key=value. It is no URL of net/url, for an authority may name
// several hosts.
type Address struct {
	Scheme string
	Host   string // between // and the next /, with what stands before an @
	Path   string // behind it, with its /
	Values url.Values
}

// String writes it as Parse reads it.
func (a Address) String() string {
	s := a.Scheme + "://" + a.Host + a.Path
	if len(a.Values) > 0 {
		s += "?" + a.Values.Encode()
	}
	return s
}

// Take removes a value and returns it; empty: it is not there.
func (a *Address) Take(key string) string {
	v := a.Values.Get(key)
	delete(a.Values, key)
	return v
}

// Rest returns an error when values are left that nobody took.
func (a *Address) Rest() error {
	var left []string
	for key := range a.Values {
		left = append(left, key)
	}
	slices.Sort(left)
	if len(left) > 0 {
		return fmt.Errorf("%s has no setting %s", a.Scheme, strings.Join(left, ", "))
	}
	return nil
}

// parse takes an address apart.
func parse(text string) (a Address, ttl time.Duration, err error) {
	scheme, rest, found := strings.Cut(text, ":")
	if !found || scheme == "" || strings.ContainsAny(scheme, "/?@ ") {
		return a, 0, fmt.Errorf("%w: an address begins with its kind, as file:///run/leases", ErrBadConfig)
	}
	rest, query, _ := strings.Cut(rest, "?")
	a = Address{Scheme: scheme, Path: rest}
	if authority, is := strings.CutPrefix(rest, "//"); is {
		at := strings.IndexByte(authority, '/')
		if at < 0 {
			at = len(authority)
		}
		a.Host, a.Path = authority[:at], authority[at:]
	}
	if a.Values, err = url.ParseQuery(query); err != nil {
		return a, 0, fmt.Errorf("%w: what stands behind the ? of the address cannot be read", ErrBadConfig)
	}
	if err := secrets(a); err != nil {
		return a, 0, err
	}
	if given := a.Take("ttl"); given != "" {
		if ttl, err = time.ParseDuration(given); err != nil || ttl <= 0 {
			return a, 0, fmt.Errorf("%w: ttl is %q, must be a duration such as 2m", ErrBadConfig, given)
		}
	}
	ttl, err = CheckTTL(ttl)
	return a, ttl, err
}

// secrets refuses an address with a password: it is printed, and others see the command line of a process.
func secrets(a Address) error {
	user, _, is := cutLast(a.Host, "@")
	if is && strings.Contains(user, ":") || a.Values.Has("password") {
		return fmt.Errorf("%w: the address has a password, which others would see: name a file", ErrBadConfig)
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(s, sep); at >= 0 {
		return s[:at], s[at+len(sep):], true
	}
	return s, "", false
}
