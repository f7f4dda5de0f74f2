// Revocation lists of an authority: made, added to, written anew before they are due.

package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"path/filepath"
	"time"

	"github.com/kith-io/kith/internal/base/files"
)

// CRLSuffix is that of the file of an authority's revocation list.
const CRLSuffix = ".crl"

// maxList bounds a list that is read, in bytes; nodes read no more of one.
const maxList = 4 << 20

// CRLPath returns where the list of the authority of a folder lies.
func CRLPath(dir string) string { return filepath.Join(dir, CAName+CRLSuffix) }

// Revocations is an authority's list of certificates that are believed no more, before it is signed.
type Revocations struct {
	ca     *CA
	number *big.Int // of the list that it follows
	list   []x509.RevocationListEntry
}

// Revocations returns what a list of this authority says, in PEM; nil: an empty one, the first.
func (c *CA) Revocations(text []byte) (*Revocations, error) {
	r := &Revocations{ca: c, number: new(big.Int)}
	if text == nil {
		return r, nil
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no revocation list in PEM")
	}
	old, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := old.CheckSignatureFrom(c.cert); err != nil {
		return nil, fmt.Errorf("the list is not one of %q: %w", c.cert.Subject, err)
	}
	if old.Number != nil {
		r.number = old.Number
	}
	r.list = old.RevokedCertificateEntries
	return r, nil
}

// Len returns how many certificates are revoked.
func (r *Revocations) Len() int { return len(r.list) }

// Issued returns an error for a certificate that is not one of the authority's, or its own: an authority is replaced.
func (r *Revocations) Issued(cert *x509.Certificate) error {
	if cert.Equal(r.ca.cert) {
		return fmt.Errorf("%q is the authority itself: replace it", cert.Subject)
	}
	if err := cert.CheckSignatureFrom(r.ca.cert); err != nil {
		return fmt.Errorf("the certificate of %q was not issued by %q: %w", cert.Subject, r.ca.cert.Subject, err)
	}
	return nil
}

// Add revokes a serial number from now on, and reports whether it was not revoked before.
func (r *Revocations) Add(serial *big.Int) bool {
	for _, e := range r.list {
		if e.SerialNumber.Cmp(serial) == 0 {
			return false
		}
	}
	r.list = append(r.list, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Now()})
	return true
}

// Sign returns the list in PEM, due to be replaced after so long. Numbers of lists grow, also when one was lost.
func (r *Revocations) Sign(valid time.Duration) ([]byte, error) {
	now := time.Now()
	number := new(big.Int).Add(r.number, big.NewInt(1))
	if at := big.NewInt(now.Unix()); number.Cmp(at) < 0 {
		number = at
	}
	template := &x509.RevocationList{Number: number, ThisUpdate: now.Add(-backdate), NextUpdate: now.Add(valid),
		RevokedCertificateEntries: r.list}
	der, err := x509.CreateRevocationList(rand.Reader, template, r.ca.cert, r.ca.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), nil
}

// ReadRevocations reads the list of the authority in dir; there need not be one yet.
func (c *CA) ReadRevocations(dir string) (*Revocations, error) {
	text, err := files.ReadOwn(CRLPath(dir), maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return c.Revocations(nil)
	}
	if err != nil {
		return nil, err
	}
	r, err := c.Revocations(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CRLPath(dir), err)
	}
	return r, nil
}

// Write signs the list and replaces the file in dir by it, at once, so that a reader gets the old one or the new
// one.
func (r *Revocations) Write(dir string, valid time.Duration) error {
	text, err := r.Sign(valid)
	if err != nil {
		return err
	}
	return writeFile(CRLPath(dir), text, 0o644, true)
}

// Lists reads all revocation lists of a PEM text; none is no error.
func Lists(text []byte) (lists []*x509.RevocationList, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// Serial returns a serial number as people write it: hexadecimal digits, with or without colons.
func Serial(text string) (*big.Int, error) {
	digits := bytes.ReplaceAll([]byte(text), []byte(":"), nil)
	n, ok := new(big.Int).SetString(string(digits), 16)
	if !ok || n.Sign() <= 0 || len(digits) > 40 {
		return nil, fmt.Errorf("%q is no serial number: 1 to 40 hexadecimal digits", text)
	}
	return n, nil
}
