// Package pki makes certificate authorities and certificates of nodes, for the node command, throw-away clusters and
// tests. Keys are ECDSA on P-256. Nothing that runs a cluster needs it: any other authority will do.
package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"

	"github.com/kith-io/kith/internal/base/files"
)

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// backdate is how long before now a certificate is valid already, for nodes with clocks that are behind.
const backdate = 5 * time.Minute

// CA is a certificate authority.
type CA struct {
	cert *x509.Certificate
	key  crypto.Signer
	pair Pair
}

// NewCA makes an authority of a name, for so long from now.
func NewCA(name string, valid time.Duration) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdate), NotAfter: now.Add(valid), IsCA: true,
		BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return ParseCA(pair)
}

// ParseCA reads an authority. The error says what is wrong with the pair.
func ParseCA(p Pair) (*CA, error) {
	certs, err := Certificates(p.Cert)
	if err != nil {
		return nil, err
	}
	if !certs[0].IsCA {
		return nil, fmt.Errorf("%q is no certificate authority", certs[0].Subject)
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("no private key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key of type %T cannot sign", parsed)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certs[0].PublicKey) {
		return nil, fmt.Errorf("the private key is not that of %q", certs[0].Subject)
	}
	return &CA{certs[0], key, p}, nil
}

// Pair returns the authority's certificate and key.
func (c *CA) Pair() Pair { return c.pair }

// Expires returns when the authority's certificate ends.
func (c *CA) Expires() time.Time { return c.cert.NotAfter }

// Request is what a node's certificate is to say.
type Request struct {
	Name   string   // of the node: the subject's common name
	URIs   []string // among them the one that names the cluster
	Hosts  []string // names and IP addresses by which the node is dialled
	From   time.Time
	Until  time.Time
	Usages []x509.ExtKeyUsage // none: server and client
}

// Issue makes a certificate with a fresh key. Zero From is now, with some leeway; Until may not be after the
// authority's own end.
func (c *CA) Issue(r Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if r.From.IsZero() {
		r.From = time.Now().Add(-backdate)
	}
	if r.Until.After(c.cert.NotAfter) {
		return Pair{}, fmt.Errorf("the certificate would end %s, after its authority, which ends %s",
			r.Until.Format(time.DateTime), c.cert.NotAfter.Format(time.DateTime))
	}
	if len(r.Usages) == 0 {
		r.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: r.Name}, NotBefore: r.From, NotAfter: r.Until,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: r.Usages}
	for _, text := range r.URIs {
		u, err := url.Parse(text)
		if err != nil {
			return Pair{}, err
		}
		template.URIs = append(template.URIs, u)
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return sign(template, c.cert, key, c.key)
}

// sign makes the certificate and both PEM texts.
func sign(template, parent *x509.Certificate, key, by crypto.Signer) (Pair, error) {
	var err error
	// 128 random bits, as CAs draw them.
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128)); err != nil {
		return Pair{}, err
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// Certificates reads all certificates of a PEM text, which must be whole; it is an error when there is none.
func Certificates(text []byte) ([]*x509.Certificate, error) {
	blocks, err := files.Blocks(text)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for _, b := range blocks {
		if b.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", b.Line, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return certs, nil
}

// Fingerprint returns the SHA-256 of a certificate as people compare it.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	var b bytes.Buffer
	for i, v := range sum {
		if i > 0 {
			b.WriteByte(':')
		}
		fmt.Fprintf(&b, "%02X", v)
	}
	return b.String()
}
