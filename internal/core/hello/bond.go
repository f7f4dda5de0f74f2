// Bonds: which process may speak for an incarnation: the node that has its certificate's name, and says its token.

package hello

import (
	"crypto/hmac"
	"crypto/sha256"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// bondFor is how long no other may come in the name of a node after its connections broke: it will be back.
const bondFor = time.Minute

// Secret is what a node makes its tokens of: 32 random bytes that it draws when it starts and tells nobody.
type Secret [32]byte

// TokenFor returns the token for hellos to a peer. A hello to an address without a known peer has none.
func (s *Secret) TokenFor(to peer.ID) (k Token) {
	if to.Inc == 0 {
		return k
	}
	mac := hmac.New(sha256.New, s[:])
	_, _ = mac.Write(peer.AppendID(nil, to))
	copy(k[:], mac.Sum(nil))
	return k
}

// IsContact reports whether a connection is one beside those that matter: a node dials it by the address alone, so it
// cannot say its token there.
func IsContact(lane wire.Lane, number uint16) bool { return lane == wire.LaneControl && number != 0 }

// Succeeds reports whether a hello's connection takes the place of one of the same lane and number.
func (h *Hello) Succeeds(generation uint32) bool { return h.Generation > generation }

// Bond is what a peer's incarnation is bound to, as far as this node has seen. With TLS it is bound to the name in its
// certificate, which survives renewal; and, with TLS or without, to a token that its node says to this one alone. The
// zero value is bound to nobody.
type Bond struct {
	name  string        // in the certificate
	named bool          // that is known,
	sure  bool          // and from the node that answers at the peer's own address, not from a hello alone
	token Token         // of its connections; zero: a node that says none
	until time.Duration // that holds when there is none of them any more
}

// Sure reports whether the name of the node at the peer's own address is known.
func (b *Bond) Sure() bool { return b.sure }

// Admits returns why a hello, under a certificate of that name, may not speak for the incarnation that it names, or
// nil. stands says that somebody speaks for it now.
func (b *Bond) Admits(h *Hello, name string, stands bool, now time.Duration) *RefusedError {
	if b.named && b.name != name {
		return &RefusedError{Reason: RefusedTaken, Key: "certificate of " + h.From.String(), Ours: name, Theirs: b.name}
	}
	if !IsContact(h.Lane, h.Number) && (stands || now < b.until) && b.token != h.Token {
		return &RefusedError{Reason: RefusedTaken, Key: "node that says to be " + h.From.String(), Ours: "another",
			Theirs: "connected"}
	}
	return nil
}

// Bind notes the node that speaks for the incarnation from now on: its hello was let in. named says that name is that
// of a certificate.
func (b *Bond) Bind(h *Hello, name string, named bool) {
	if !IsContact(h.Lane, h.Number) {
		b.token = h.Token
	}
	if named && !b.named {
		b.name, b.named = name, true
	}
}

// Left notes that the last connection of the incarnation has ended.
func (b *Bond) Left(now time.Duration) { b.until = now + bondFor }

// Confirm notes the name in the certificate of the node that answers at the peer's own address as this incarnation. It
// weighs more than what hellos say. before is the name noted until now; displaced says that it was another one: the
// caller ends connections in that name. A refusal says that the node there has another name than before; then nothing
// is noted.
func (b *Bond) Confirm(id peer.ID, name string) (before string, displaced bool, refused *RefusedError) {
	before = b.name
	switch {
	case b.sure && b.name == name:
		return before, false, nil
	case b.sure:
		return before, false, &RefusedError{Peer: id, Reason: RefusedTaken, Key: "certificate of " + id.String(),
			Ours: before, Theirs: name}
	}
	displaced = b.named && b.name != name
	if displaced {
		*b = Bond{}
	}
	b.name, b.named, b.sure = name, true, true
	return before, displaced, nil
}
