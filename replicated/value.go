// Value: what a replicated value can do, so that a node can merge, send and keep it.

package replicated

import (
	"errors"

	"github.com/kith-io/kith/peer"
)

// Value is a replicated value of type V, immutable. Package replicated/replicatedtest holds a type of your own to the
// laws: Merge is commutative, associative and idempotent, and a delta does what the state that it was taken from does.
// No method may block, keep memory of others, or panic; they are called by several goroutines at a time.
type Value[V any] interface {
	// Kind names the type and what it is made of, at most 64 bytes: nodes that open one name with different kinds do not
	// merge, which Stats().Replicated counts as refused. It may be called on the zero value.
	Kind() string
	// Merge returns what has everything that either has.
	Merge(other V) V
	// Since returns a delta: what turns old, merged with it, into this value merged with old. The whole value will do;
	// less is less to send.
	Since(old V) V
	// Append appends the value to b, and the same bytes for equal values on every node. Errors: what cannot be written;
	// an Update that leads to one is refused.
	Append(b []byte) ([]byte, error)
	// Parse reads what Append appended; it is called on the value that Open was given. The bytes are another node's:
	// check lengths before allocating, and return an error for whatever Append could not have written. It keeps no view
	// into b.
	Parse(b []byte) (V, error)
	// Fold moves what gone contributed to the zero identity; a value that knows no identities returns itself. No version
	// of kith calls it yet: it is for incarnations that were removed, after every member holds all their updates, so that
	// those of years do not add up. It is here because a method that came later would break types of your own.
	Fold(gone peer.ID) V
}

// ErrMalformed is wrapped by errors of Parse.
var ErrMalformed = errors.New("replicated: malformed value")
