// Revocation: lists of certificates that are no longer valid: how they are read, which authority signed them, what they
// hold.

package trust

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/base/files"
)

// Bounds of revocation lists: of all lists of a node together.
const (
	MaxCRLBytes = 4 << 20 // as they are encoded in DER, and of the file that they are read from
	MaxCRLs     = 64
)

const crlBlock = "X509 CRL" // type of a PEM block

// ParseCRLs reads certificate revocation lists (RFC 5280): one or more in PEM, or one or more in DER, back to back. At
// most MaxCRLBytes and MaxCRLs are read. Nobody's signature is checked. An error names what is wrong; a text without a
// list is one.
func ParseCRLs(text []byte) ([]*x509.RevocationList, error) {
	if len(text) > MaxCRLBytes {
		return nil, fmt.Errorf("revocation lists have more than %d bytes", MaxCRLBytes)
	}
	parts, err := splitCRLs(text)
	if err != nil {
		return nil, err
	}
	lists := make([]*x509.RevocationList, 0, len(parts))
	for i, der := range parts {
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("revocation list %d: %w", i+1, err)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// splitCRLs returns the DER of each list.
func splitCRLs(text []byte) (parts [][]byte, err error) {
	begins := bytes.Count(text, []byte("-----BEGIN "+crlBlock+"-----"))
	isPEM := bytes.Contains(text, []byte("-----BEGIN "))
	for rest := text; len(rest) > 0 && len(parts) <= MaxCRLs; {
		if isPEM {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type == crlBlock {
				parts = append(parts, block.Bytes)
			}
			continue
		}
		var one asn1.RawValue
		if rest, err = asn1.Unmarshal(rest, &one); err != nil {
			return nil, fmt.Errorf("revocation list %d is neither PEM nor DER: %w", len(parts)+1, err)
		}
		parts = append(parts, one.FullBytes)
	}
	switch {
	case len(parts) > MaxCRLs:
		return nil, fmt.Errorf("more than %d revocation lists", MaxCRLs)
	case len(parts) == 0 && begins == 0:
		return nil, errors.New("no revocation list")
	case isPEM && len(parts) != begins: // a broken block is passed over in silence
		return nil, fmt.Errorf("%d of %d revocation lists are broken PEM", begins-len(parts), begins)
	}
	return parts, nil
}

// readCRLs reads the lists of a file.
func readCRLs(name string) ([]*x509.RevocationList, error) {
	text, err := files.Read(name, MaxCRLBytes)
	if err != nil {
		return nil, err
	}
	lists, err := ParseCRLs(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return lists, nil
}

// authorityKey is what makes two certificates of authorities the same one: name and public key.
type authorityKey [sha256.Size]byte

func authorityOf(cert *x509.Certificate) authorityKey {
	h := sha256.New()
	h.Write(cert.RawSubject)
	h.Write(cert.RawSubjectPublicKeyInfo)
	return authorityKey(h.Sum(nil))
}

// revocations are the certificates that are no longer valid. They are immutable; nil: none.
type revocations struct {
	serials map[authorityKey]map[string]struct{}
	digest  [sha256.Size]byte // of the lists, to tell others
	lists   []crlTerm
	count   int // certificates
}

// crlTerm is when a list was due to be replaced; zero: never.
type crlTerm struct {
	issuer    string
	from, due time.Time
}

// newRevocations takes lists, each of which must be signed by one of the issuers, which must be believed themselves. A
// list with parts that this code does not understand is refused: they may spare or revoke other certificates.
func newRevocations(c *Credentials) (*revocations, error) {
	if len(c.CRLs) == 0 {
		return nil, nil
	}
	r := &revocations{serials: map[authorityKey]map[string]struct{}{}}
	h, size := sha256.New(), 0
	for i, list := range c.CRLs {
		if size += len(list.Raw); i >= MaxCRLs || size > MaxCRLBytes {
			return nil, fmt.Errorf("revocation lists: more than %d, or %d bytes", MaxCRLs, MaxCRLBytes)
		}
		issuer, err := signerOf(list, c)
		if err != nil {
			return nil, fmt.Errorf("revocation list of %q: %w", list.Issuer, err)
		}
		if err := understood(list); err != nil {
			return nil, fmt.Errorf("revocation list of %q: %w", list.Issuer, err)
		}
		h.Write(list.Raw)
		r.lists = append(r.lists, crlTerm{list.Issuer.String(), list.ThisUpdate, list.NextUpdate})
		key := authorityOf(issuer)
		if r.serials[key] == nil {
			r.serials[key] = make(map[string]struct{}, len(list.RevokedCertificateEntries))
		}
		for _, e := range list.RevokedCertificateEntries {
			r.serials[key][string(e.SerialNumber.Bytes())] = struct{}{}
		}
	}
	for _, s := range r.serials {
		r.count += len(s)
	}
	r.digest = [sha256.Size]byte(h.Sum(nil))
	return r, nil
}

// signerOf returns the authority that signed a list.
func signerOf(list *x509.RevocationList, c *Credentials) (*x509.Certificate, error) {
	err := errors.New("it is signed by nobody who is believed")
	for _, issuer := range c.Issuers {
		if !bytes.Equal(issuer.RawSubject, list.RawIssuer) {
			continue
		}
		if bad := list.CheckSignatureFrom(issuer); bad != nil {
			err = bad
			continue
		}
		// An expired authority is not believed when it vouches for a node; here it takes its word back.
		_, bad := issuer.Verify(x509.VerifyOptions{Roots: c.CAs, CurrentTime: issuer.NotBefore,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if bad == nil {
			return issuer, nil
		}
		err = bad
	}
	return nil, err
}

// understood refuses what only some of the certificates of an authority are on, or what takes revocations back.
func understood(list *x509.RevocationList) error {
	for _, e := range list.Extensions {
		if e.Critical {
			return fmt.Errorf("it has the critical extension %v: only whole lists of one authority are taken", e.Id)
		}
	}
	for _, entry := range list.RevokedCertificateEntries {
		for _, e := range entry.Extensions {
			if e.Critical {
				return fmt.Errorf("serial %x has the critical extension %v", entry.SerialNumber, e.Id)
			}
		}
	}
	return nil
}

// judge demands that one of the chains by which a certificate is believed, leaf first, has no revoked certificate.
func (r *revocations) judge(chains [][]*x509.Certificate) error {
	if r == nil {
		return nil
	}
	var first error
	for _, chain := range chains {
		err := r.revoked(chain)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (r *revocations) revoked(chain []*x509.Certificate) error {
	for i := range len(chain) - 1 {
		cert, by := chain[i], chain[i+1]
		if _, out := r.serials[authorityOf(by)][string(cert.SerialNumber.Bytes())]; out {
			return &TLSError{TLSRevoked, fmt.Errorf("certificate of %q, serial %x, is revoked by %q",
				cert.Subject, cert.SerialNumber, by.Subject)}
		}
	}
	return nil
}

// same reports whether other was made of the same lists.
func (r *revocations) same(other *revocations) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.digest == other.digest
}

// stale returns how many lists should have been replaced by now, and one of them.
func (r *revocations) stale(now time.Time) (count int, one crlTerm) {
	if r == nil {
		return 0, one
	}
	for _, l := range r.lists {
		if !l.due.IsZero() && now.After(l.due) {
			count, one = count+1, l
		}
	}
	return count, one
}

// known returns how many certificates are revoked.
func (r *revocations) known() int {
	if r == nil {
		return 0
	}
	return r.count
}
