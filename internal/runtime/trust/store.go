// Trust: the certificate that this node proves itself with, the authorities that it believes, how a peer's certificate
// is judged, and how all of it is renewed while the node runs.

package trust

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/callback"
)

// TLS configures mutual TLS 1.3 between all nodes of a cluster: either files, or Load. The zero value is none.
type TLS struct {
	// CertFile and KeyFile hold this node's certificate chain, leaf first, and its private key, both PEM. The leaf must
	// be for servers and clients both, and carry the URI that ClusterURI returns.
	CertFile, KeyFile string
	// CAFile holds the certificates of the authorities that are trusted, PEM: one, or during a rotation the old and the
	// new one. No other authority is believed, those of the system neither.
	CAFile string
	// CRLFile holds the revocation lists of those authorities, if they have any: PEM or DER, at most MaxCRLBytes. A node
	// with a certificate on one is refused. Each must be signed by an authority of CAFile, or of CertFile's chain.
	CRLFile string
	// Load returns all of that from memory, instead of the files. It is called at the start and by ReloadTLS, and must
	// not block for long.
	Load func() (Credentials, error)
	// VerifyHost demands also that the certificate of a node that is dialled names the host that it was dialled by.
	VerifyHost bool
}

// Credentials are what a node proves itself with, and the authorities that it believes. They must not be changed
// afterwards.
type Credentials struct {
	Certificate tls.Certificate
	CAs         *x509.CertPool
	// CRLs are revocation lists (see ParseCRLs), at most MaxCRLs, and Issuers the certificates of the authorities that
	// signed them, which CAs must vouch for: a pool gives its own certificates away to nobody.
	CRLs    []*x509.RevocationList
	Issuers []*x509.Certificate
}

// On reports whether TLS is configured.
func (c TLS) On() bool { return c.CertFile != "" || c.KeyFile != "" || c.CAFile != "" || c.Load != nil }

// Validate returns all faults of the fields joined; it reads no file.
func (c TLS) Validate() error {
	if !c.On() {
		if c.VerifyHost {
			return errors.New("TLS: VerifyHost without certificates")
		}
		if c.CRLFile != "" {
			return errors.New("TLS: CRLFile without certificates")
		}
		return nil
	}
	files := c.CertFile != "" && c.KeyFile != "" && c.CAFile != ""
	switch {
	case c.Load != nil && (c.CertFile != "" || c.KeyFile != "" || c.CAFile != "" || c.CRLFile != ""):
		return errors.New("TLS: Load and files exclude each other")
	case c.Load == nil && !files:
		return errors.New("TLS: CertFile, KeyFile and CAFile are needed together")
	}
	return nil
}

// ClusterURI is the URI among the subject alternative names of a certificate that makes it one of the cluster's nodes.
func ClusterURI(name string) string { return "kith://cluster/" + url.PathEscape(name) }

// Store holds the credentials of now. All methods are safe for concurrent use but Warn.
type Store struct {
	cfg TLS
	uri string
	now func() time.Time // of certificates: wall time

	every time.Duration // how often the files are looked at for a change, at most

	handshakeBytes int           // of a handshake that a stranger may send
	places         chan struct{} // of strangers' handshakes that are worked on at a time

	current  atomic.Pointer[State]
	reloads  atomic.Uint64 // that changed the credentials
	failures atomic.Uint64 // reloads that failed: the old ones stay

	warned, warnedStale time.Time // of the end of the own certificate, and of a list; in the sweep

	mu     sync.Mutex
	stamps []os.FileInfo
	looked time.Time

	held sync.Map // of *Conn: connections that are on no loop and behind their hello
}

// State is the credentials of one time, as they were loaded, and what follows from them. It is immutable, and States
// are numbered in the order in which they were loaded.
type State struct {
	Credentials
	uri     string
	number  uint64
	ends    time.Time // when the own leaf expires
	cas     []string  // fingerprints of the authorities, as far as they are known
	revoked *revocations
}

// Config is what a Store is made of. There are no defaults: the caller fills in all of it.
type Config struct {
	TLS            TLS
	Cluster        string           // name of the cluster that a certificate must carry
	Now            func() time.Time // wall time, by which certificates are judged
	Every          time.Duration    // how often the files are looked at for a change, at most
	HandshakeBytes int              // of a handshake that a stranger may send; a node that was dialled, four times as many
	Handshakes     int              // of strangers that are worked on at a time
}

// New loads the credentials. The error says what is wrong with them, or that other nodes would refuse this one.
func New(cfg Config) (*Store, error) {
	t := &Store{cfg: cfg.TLS, uri: ClusterURI(cfg.Cluster), now: cfg.Now, every: cfg.Every,
		handshakeBytes: cfg.HandshakeBytes, places: make(chan struct{}, cfg.Handshakes)}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Now is the wall time by which certificates are judged.
func (t *Store) Now() time.Time { return t.now() }

// State returns the credentials of now.
func (t *Store) State() *State { return t.current.Load() }

// VerifiesHosts reports whether certificates must name the host that their node is at.
func (t *Store) VerifiesHosts() bool { return t.cfg.VerifyHost }

// Figures counts the times that the credentials were loaded, the start included, and those that they could not be.
func (t *Store) Figures() (loaded, failed uint64) { return t.reloads.Load(), t.failures.Load() }

// Working returns how many handshakes of strangers are worked on now.
func (t *Store) Working() int { return len(t.places) }

// Turn returns the right of one stranger's handshake to be worked on; it is for Conn.Shake.
func (t *Store) Turn() *Turn { return &Turn{places: t.places} }

// EachHeld calls f with every connection that stays a blocking one and stands, in any order.
func (t *Store) EachHeld(f func(*Conn)) {
	t.held.Range(func(key, _ any) bool {
		f(key.(*Conn))
		return true
	})
}

// Reload loads the credentials anew. Those that other nodes would refuse are not taken: the old ones stay.
func (t *Store) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reloadLocked(t.stat())
}

func (t *Store) reloadLocked(stamps []os.FileInfo) error {
	t.looked = time.Now()
	load := t.cfg.Load
	if load == nil {
		load = t.cfg.load
	}
	c, err := Credentials{}, callback.ErrPanicked
	if why := (*callback.Guard)(nil).Call("TLS.Load", func() { c, err = load() }); why != nil {
		err = why
	}
	if err == nil {
		next := &State{Credentials: c, uri: t.uri, number: t.reloads.Load() + 1}
		if err = next.check(t.now()); err == nil {
			err = next.follows(t.current.Load())
		}
		if err == nil {
			t.stamps = stamps
			if old := t.current.Load(); old != nil && old.same(next) {
				return nil
			}
			t.reloads.Add(1)
			t.current.Store(next)
			return nil
		}
	}
	t.failures.Add(1)
	return fmt.Errorf("TLS credentials: %w", err)
}

// Refresh looks at the files, unless it did a moment ago, and loads them when they have changed. changed says that the
// credentials are other ones; an error that the files are there and no good, which is tried again.
func (t *Store) Refresh() (changed bool, err error) {
	if t.cfg.Load != nil {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.looked) < t.every {
		return false, nil
	}
	t.looked = time.Now()
	stamps := t.stat()
	if slices.EqualFunc(stamps, t.stamps, sameFile) {
		return false, nil
	}
	err = t.reloadLocked(stamps)
	return err == nil, err
}

// stat returns what tells a changed file; a file that is not there counts as unchanged until it is.
func (t *Store) stat() []os.FileInfo {
	var stamps []os.FileInfo
	for i, name := range []string{t.cfg.CertFile, t.cfg.KeyFile, t.cfg.CAFile, t.cfg.CRLFile} {
		info, err := os.Stat(name)
		if err != nil && i < len(t.stamps) {
			info = t.stamps[i]
		}
		stamps = append(stamps, info)
	}
	return stamps
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// load reads the files.
func (c TLS) load() (out Credentials, err error) {
	if out.Certificate, err = loadPair(c.CertFile, c.KeyFile); err != nil {
		return out, err
	}
	if out.Issuers, err = loadAuthorities(c.CAFile); err != nil {
		return out, err
	}
	out.CAs = x509.NewCertPool()
	for _, ca := range out.Issuers {
		out.CAs.AddCert(ca)
	}
	for _, der := range out.Certificate.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			out.Issuers = append(out.Issuers, cert)
		}
	}
	if c.CRLFile != "" {
		out.CRLs, err = readCRLs(c.CRLFile)
	}
	return out, err
}

// follows demands that the certificate names the same node as the one before it: peers know this one by it.
func (c *State) follows(old *State) error {
	if old == nil || nodeName(c.Certificate.Leaf) == nodeName(old.Certificate.Leaf) {
		return nil
	}
	return fmt.Errorf("the certificate names node %q, this one is %q until it is started anew",
		nodeName(c.Certificate.Leaf), nodeName(old.Certificate.Leaf))
}

// same reports whether other has the same certificates, believes the same authorities, and knows the same revocations.
func (c *State) same(other *State) bool {
	return slices.EqualFunc(c.Certificate.Certificate, other.Certificate.Certificate, bytes.Equal) &&
		c.CAs.Equal(other.CAs) && c.revoked.same(other.revoked)
}

// check demands that another node with the same credentials would accept this one.
func (c *State) check(now time.Time) error {
	if len(c.Certificate.Certificate) == 0 || c.CAs == nil {
		return errors.New("no certificate, or no authority")
	}
	var chain []*x509.Certificate
	for _, der := range c.Certificate.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain = append(chain, cert)
	}
	c.Certificate.Leaf, c.ends = chain[0], chain[0].NotAfter
	var err error
	if c.revoked, err = newRevocations(&c.Credentials); err != nil {
		return err
	}
	c.cas = fingerprintsOf(c.CAs, c.Issuers)
	c.CRLs, c.Issuers = nil, nil // what they say is known, and they may be large
	if err := c.judge(chain, "", now); err != nil {
		return fmt.Errorf("this node's own certificate would be refused: %w", err)
	}
	return nil
}

// judge decides whether a chain, leaf first, is one of a node of this cluster. host: also that it names it.
func (c *State) judge(chain []*x509.Certificate, host string, now time.Time) error {
	if len(chain) == 0 {
		return &TLSError{TLSNoCertificate, errors.New("the peer gave no certificate")}
	}
	if len(chain) > MaxChain {
		return &TLSError{TLSChain, fmt.Errorf("the peer gave %d certificates, at most %d", len(chain), MaxChain)}
	}
	leaf, others := chain[0], c.between(chain[1:], now)
	// A list of usages would mean any of them, and a node is both.
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		chains, err := leaf.Verify(x509.VerifyOptions{Roots: c.CAs, Intermediates: others, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return &TLSError{tlsReason(err, now), fmt.Errorf("certificate of %q: %w", leaf.Subject, inWords(err, usage, now))}
		}
		if err := c.revoked.judge(chains); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(leaf.URIs, func(u *url.URL) bool { return u.String() == c.uri }) {
		return &TLSError{TLSCluster, fmt.Errorf("certificate of %q names %v, not %s", leaf.Subject, leaf.URIs, c.uri)}
	}
	if host != "" {
		if err := leaf.VerifyHostname(host); err != nil {
			return &TLSError{TLSHost, err}
		}
	}
	return nil
}
