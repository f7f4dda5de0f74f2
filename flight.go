// Flight record: what a node was given and decided lately, for replay.

package kith

import (
	"context"
	"io"

	"github.com/kith-io/kith/internal/runtime/driver"
)

// FlightRecord says how much of the inputs of this node's control plane is kept, and where they are left (Config.
// FlightRecord). The zero value is ready. docs/flight-record.md says what a record is and how it is replayed.
type FlightRecord struct {
	// Bytes bounds the memory of the record; zero means 4 MiB, at least 64 KiB, at most 1 GiB, negative means none. Each
	// half of it begins with the state of the control plane, which must fit in a quarter: when it does not, the record
	// ends, and the log says so once.
	Bytes int
	// Directory is where a record is left when this node ends because it was downed, removed, cut off or of a twin of its
	// cluster, when the resolver stops it, and when its control goroutine panics: eight files at most, the oldest go.
	// Empty means Config.Directory, and none is left if that is empty too.
	Directory string
}

// ErrNoFlightRecord is wrapped by the error of WriteFlightRecord when nothing is recorded.
var ErrNoFlightRecord = driver.ErrNoFlightRecord

// WriteFlightRecord writes the flight record as of now to w, at most FlightRecord.Bytes and a few thousand more. It
// holds addresses, metadata and what moving shards handed over, users' messages among them. Errors: ErrNoFlightRecord,
// those of ctx and of w, and why the node has ended.
func (n *Node) WriteFlightRecord(ctx context.Context, w io.Writer) error {
	return driver.WriteFlight(ctx, n.d, w)
}
