// Clean: what a command prints may hold words of other nodes, of certificates and of files; no terminal may obey them.

package cli

import (
	"io"
	"unicode/utf8"

	"github.com/kith-io/kith/wire"
)

// Clean returns a writer that passes text on to w with everything escaped that a terminal could take for an order: all
// that is not printable, but newlines, tabs and spaces. The escapes are those of JSON, so that JSON stays JSON. A Write
// holds whole characters.
func Clean(w io.Writer) io.Writer { return cleaner{w} }

type cleaner struct{ w io.Writer }

// Write escapes p and writes it.
func (c cleaner) Write(p []byte) (int, error) {
	var out []byte
	plain := 0 // what of p stands in out, when there is one
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if r != '\n' && r != '\t' && !wire.IsPrintable(r, n) {
			out = append(out, p[plain:i]...)
			out = wire.AppendEscaped(out, r, p[i])
			plain = i + n
		}
		i += n
	}
	if out == nil {
		return c.w.Write(p)
	}
	if _, err := c.w.Write(append(out, p[plain:]...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
