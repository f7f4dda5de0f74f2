// The certificate of an admin interface: that of its node.

package service

import (
	"crypto/tls"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/base/pki"
)

// shownCert is the certificate that an admin interface shows, from files that are read once a second at most: strangers
// open connections as often as they want.
type shownCert struct {
	cert, key string

	mu   sync.Mutex
	at   time.Time
	pair *tls.Certificate
	err  error
}

// get returns what the files hold.
func (s *shownCert) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < time.Second {
		return s.pair, s.err
	}
	var pair tls.Certificate
	chain, err := files.Read(s.cert, pki.MaxFile)
	if err == nil {
		var key []byte
		if key, err = files.Read(s.key, pki.MaxFile); err == nil {
			pair, err = tls.X509KeyPair(chain, key)
		}
	}
	s.at, s.pair, s.err = time.Now(), &pair, err
	return s.pair, s.err
}
