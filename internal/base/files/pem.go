// PEM: texts with certificates, keys and lists that are whole.

package files

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrNotWhole is wrapped by the error of a text that a part is missing of, or that is damaged.
var ErrNotWhole = errors.New("not whole")

// Block is one block of PEM, and the line on which it begins.
type Block struct {
	*pem.Block
	Line int
}

var (
	begins = regexp.MustCompile(`^-----BEGIN ([^-]+)-----$`)
	// remnant is a line of a block, where none is: what is before it is gone.
	remnant = regexp.MustCompile(`^\s*[A-Za-z0-9+/]{60,76}={0,2}$`)
)

// Blocks returns all blocks of a text. Between them there may be lines of text, as openssl writes them, but nothing
// that was once a block: the standard library passes over one that is cut short, damaged or indented, and the authority
// in it is not believed, without a word.
func Blocks(text []byte) (list []Block, err error) {
	fault := func(line int, format string, args ...any) error {
		return fmt.Errorf("line %d: %w: %s", line+1, ErrNotWhole, fmt.Sprintf(format, args...))
	}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return nil, fault(0, "it begins with a byte order mark: write it without")
	case !utf8.Valid(text) || bytes.ContainsFunc(text, unprintable):
		return nil, fault(0, "it is no text: PEM is wanted")
	}
	lines := strings.Split(string(text), "\n")
	for n := 0; n < len(lines); n++ {
		line := strings.TrimRight(lines[n], " \t\r")
		found := begins.FindStringSubmatch(line)
		switch {
		case found != nil:
		case strings.HasPrefix(strings.TrimSpace(line), "-----"):
			return nil, fault(n, "%.40q does not begin a block", line)
		case remnant.MatchString(line):
			return nil, fault(n, "this is a part of a block that does not begin")
		default:
			continue
		}
		end := n + 1
		for ; end < len(lines); end++ {
			if l := strings.TrimSpace(lines[end]); strings.HasPrefix(l, "-----") {
				break
			}
		}
		if end == len(lines) || strings.TrimRight(lines[end], " \t\r") != "-----END "+found[1]+"-----" {
			return nil, fault(n, "the block %s that begins here does not end", found[1])
		}
		whole := strings.Join(lines[n:end], "\n") + "\n-----END " + found[1] + "-----\n"
		block, rest := pem.Decode([]byte(whole))
		if block == nil || len(rest) > 0 {
			return nil, fault(n, "the block %s that begins here is damaged", found[1])
		}
		list = append(list, Block{block, n + 1})
		n = end
	}
	return list, nil
}

// unprintable reports whether a rune has no place in a text.
func unprintable(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' }

// Certificates returns all certificates of a text of PEM that has nothing else, at least one.
func Certificates(text []byte) (certs []*x509.Certificate, err error) {
	blocks, err := Blocks(text)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("line %d: %s, where only certificates are wanted", b.Line, b.Type)
		}
		cert, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", b.Line, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate")
	}
	return certs, nil
}
