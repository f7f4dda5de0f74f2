// Flags: what several commands check of the values of their flags, and how a fault names the flag that it is about.

package cli

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
)

// Faults gathers what is wrong with the flags of a command, so that all of it is reported at once.
type Faults []error

// Must adds what is wrong where ok does not hold.
func (f *Faults) Must(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// Err returns all that is wrong joined, or nil.
func (f Faults) Err() error { return errors.Join(f...) }

// Address returns why the value of a flag is no host:port, or nil when it is one. The host may be empty, the port zero.
func Address(flag, value string) error {
	host, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // without a look at the network
	}
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`/@?#"`, r)
	}
	if err != nil || strings.ContainsFunc(host, odd) {
		return fmt.Errorf("%s: host:port is wanted, not %.80q", flag, value)
	}
	return nil
}

// About returns err, or the errors that are joined in it, each of which wraps of and speaks of a field with the flag
// before it that sets the field. named is fields and flags in turn. A fault that has its flag already stays as it is.
func About(err, of error, named ...string) error {
	if several, is := err.(interface{ Unwrap() []error }); is {
		joined := several.Unwrap()
		if err.Error() == errors.Join(joined...).Error() { // and not one message that wraps several
			var all []error
			for _, e := range joined {
				all = append(all, About(e, of, named...))
			}
			return errors.Join(all...)
		}
	}
	if err == nil || !errors.Is(err, of) {
		return err
	}
	for i := 0; i+1 < len(named); i += 2 {
		if text := err.Error(); strings.Contains(text, named[i]) && !strings.Contains(text, named[i+1]+" ") {
			return fmt.Errorf("%s: %w", named[i+1], err)
		}
	}
	return err
}
