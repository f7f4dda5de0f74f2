// Standing: how long a connection that stands is believed, and when it is to be made anew.

package trust

import (
	"math/rand/v2"
	"time"
)

// judgeEvery is how often the certificates of a standing connection are judged again at least.
const judgeEvery = time.Minute

// Doubt judges the peer again, by the credentials and the wall time of now, when they are other ones, or once a minute.
// The error is a *TLSError: the connection is to end. Only one goroutine may call it.
func (s *Conn) Doubt(creds *State, now time.Time) error {
	if s.judged == creds && now.Sub(s.judgedAt) < judgeEvery {
		return nil
	}
	s.judged, s.judgedAt = creds, now
	return creds.judge(s.peer, s.host, now)
}

// keep notes what the upkeep of the connection needs: the peer's chain, and when to renew it, which is at two thirds of
// what is left of the certificates of both ends, and a little earlier at random, so that not all connections do at
// once.
func (s *Conn) keep(now time.Time) {
	s.peer = s.ConnectionState().PeerCertificates
	s.judged, s.judgedAt = s.creds, now
	ends := s.creds.ends
	for _, cert := range s.peer {
		if cert.NotAfter.Before(ends) {
			ends = cert.NotAfter
		}
	}
	left := max(ends.Sub(now), 0)
	s.renewAt = now.Add(left*2/3 - rand.N(left/20+1))
}

// Under reports whether the connection was made with these credentials.
func (s *Conn) Under(creds *State) bool { return s.creds == creds }

// Fresh reports whether the connection need not be made anew at this wall time: it was made with these credentials, and
// neither end's certificate has come of age.
func (s *Conn) Fresh(creds *State, now time.Time) bool {
	return s.creds == creds && now.Before(s.renewAt)
}

// Believed reports whether the peer's certificate is good by these credentials at this wall time.
func (s *Conn) Believed(creds *State, now time.Time) bool {
	return creds.judge(s.peer, s.host, now) == nil
}

// PutOff keeps the connection as it is until a time. Only the code that renews it calls this and IsPutOff.
func (s *Conn) PutOff(until time.Time) { s.putOff = until }

// IsPutOff reports whether it is to stay as it is.
func (s *Conn) IsPutOff(now time.Time) bool { return now.Before(s.putOff) }

// SetAnew says whether the dialler of a connection that stays a blocking one makes it anew rather than have it judged.
// Safe for concurrent use, as IsAnew is.
func (s *Conn) SetAnew(yes bool) { s.anew.Store(yes) }

// IsAnew returns what SetAnew said last.
func (s *Conn) IsAnew() bool { return s.anew.Load() }
