// Entries: what is decided at once, a batch of commands or a change of set.

package records

import (
	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Kinds of entries, and of the commands of a batch.
const (
	batchEntry   = 1
	changeEntry  = 2
	commitWrites = 1
	forgetMarks  = 2
)

// maxBatch is the most commands of one entry.
const maxBatch = 1024

// command is one of a batch, decoded.
type command struct {
	kind   uint8
	writes []Write
	by     int64 // of forgetMarks: milliseconds since 1970
	most   int
}

// appendCommit appends a command that writes all or none.
func appendCommit(b []byte, writes []Write) []byte {
	b = wire.AppendUvarint(append(b, commitWrites), uint64(len(writes)))
	for i := range writes {
		b = appendWrite(b, &writes[i])
	}
	return b
}

// appendForget appends a command that takes marks away that are older than by, at most most.
func appendForget(b []byte, by int64, most int) []byte {
	return wire.AppendUvarint(wire.AppendU64(append(b, forgetMarks), uint64(by)), uint64(most))
}

func readCommand(r *wire.Reader) command {
	c := command{kind: r.U8()}
	switch c.kind {
	case commitWrites:
		for range r.Count(leastWrite, maxWrites) {
			c.writes = append(c.writes, readWrite(r))
		}
	case forgetMarks:
		c.by, c.most = int64(r.U64()), r.Count(0, maxForget)
	default:
		r.Fail(wire.ErrBadValue)
	}
	return c
}

// entry is one, decoded. set is that of a change.
type entry struct {
	set      peer.Set
	commands []command
}

// appendBatch appends an entry of encoded commands.
func appendBatch(b []byte, commands [][]byte) []byte {
	b = wire.AppendUvarint(append(b, batchEntry), uint64(len(commands)))
	for _, c := range commands {
		b = append(b, c...)
	}
	return b
}

// appendChange appends an entry that changes the set.
func appendChange(b []byte, set peer.Set) []byte { return appendSet(append(b, changeEntry), set) }

// readEntry reads an entry, and nothing beside it.
func readEntry(body []byte) (e entry, err error) {
	r := wire.NewReader(0, body)
	switch r.U8() {
	case batchEntry:
		for range r.Count(2, maxBatch) {
			e.commands = append(e.commands, readCommand(&r))
		}
	case changeEntry:
		if e.set = readSet(&r, MaxReplicas); len(e.set) == 0 {
			r.Fail(wire.ErrBadValue)
		}
	default:
		r.Fail(wire.ErrBadValue)
	}
	return e, r.Done()
}

// chained returns the chain of a history that an entry was appended to.
func chained(chain uint64, body []byte) uint64 {
	return xxhash.Sum64(wire.AppendU64(wire.AppendU64(make([]byte, 0, 16), chain), xxhash.Sum64(body)))
}

// result is what became of one command.
type result struct {
	version bool // a record is of another version; nothing of it was written
	count   int  // of marks that were taken away
}

func appendResults(b []byte, list []result) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = wire.AppendUvarint(wire.AppendBool(b, x.version), uint64(x.count))
	}
	return b
}

func readResults(r *wire.Reader) (list []result) {
	for range r.Count(2, maxBatch) {
		list = append(list, result{r.Bool(), r.Count(0, maxForget)})
	}
	return list
}
