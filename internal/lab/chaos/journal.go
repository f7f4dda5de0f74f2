// Journals: what a process notes of its messages, in files that it maps into memory. A note survives the process that
// made it, costs no system call, and can be read while that process stands still.

package chaos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kith-io/kith"
)

// A journal is a row of records of words. The first word of the file counts the records that were begun; the first word
// of a record is written last and tells that it is there.
const (
	recordWords  = 6
	recordBytes  = recordWords * 8
	journalSlots = 1 << 20 // records of one process; the file has holes where nothing was written
	journalBytes = (journalSlots + 1) * recordBytes
)

var errJournalFull = errors.New("the journal is full")

// record is one row.
type record [recordWords]uint64

// journal is a mapped file.
type journal struct {
	words []uint64
	raw   []byte
}

// openJournal maps the file at path, which is made when it is not there.
func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(journalBytes); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, journalBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map journal %s: %w", path, err)
	}
	return &journal{unsafe.Slice((*uint64)(unsafe.Pointer(&raw[0])), journalBytes/8), raw}, nil
}

func (j *journal) close() error { return unix.Munmap(j.raw) }

// begun returns how many records were begun.
func (j *journal) begun() int {
	return int(min(atomic.LoadUint64(&j.words[0]), journalSlots))
}

// begin takes the next record. It is not there before its first word is put.
func (j *journal) begin() (int, error) {
	n := atomic.AddUint64(&j.words[0], 1)
	if n > journalSlots {
		return 0, errJournalFull
	}
	return int(n - 1), nil
}

// put writes a word of a record.
func (j *journal) put(n, word int, v uint64) {
	atomic.StoreUint64(&j.words[(n+1)*recordWords+word], v)
}

// get reads a record.
func (j *journal) get(n int) (r record) {
	for w := range r {
		r[w] = atomic.LoadUint64(&j.words[(n+1)*recordWords+w])
	}
	return r
}

// Notes are the records: what a process sent and what became of it, and what its entities handled.

// fate is how a sent message stands with its sender.
type fate uint8

const (
	fateNone     fate = iota // the sender had not called yet when it was killed
	fateAccepted             // a tell that was accepted
	fateRefused              // refused at once with an error: it was never accepted
	fateAsked                // an ask that was accepted and is under way
	fateAnswered             // its answer came
	fateFailed               // it ended with an error, which its asker got
	fateReported             // no message: Config.Undelivered reported some
)

// sent is one note of a sender.
type sent struct {
	fate   fate
	ask    bool          // fateReported: they had come to this process, and were dropped there
	target uint16        // which entity
	reason uint16        // of what was refused, failed or reported
	typ    uint8         // fateReported: the type,
	shard  uint32        //   the shard,
	count  uint64        //   and how many
	from   time.Duration // when the call began
	until  time.Duration // when it was over, or the answer came
}

// accepted reports whether a message was, and no error has come back since.
func (s *sent) accepted() bool {
	return s.fate == fateAccepted || s.fate == fateAsked || s.fate == fateAnswered
}

func (s *sent) record() (r record) {
	r[0] = uint64(s.fate) | uint64(s.target)<<16 | uint64(s.reason)<<32 | uint64(s.typ)<<48
	if s.ask {
		r[0] |= 1 << 8
	}
	r[1], r[2], r[3], r[4] = uint64(s.from), uint64(s.until), s.count, uint64(s.shard)
	return r
}

func sentOf(r record) sent {
	return sent{fate: fate(r[0]), ask: r[0]>>8&1 == 1, target: uint16(r[0] >> 16), reason: uint16(r[0] >> 32),
		typ: uint8(r[0] >> 48), from: time.Duration(r[1]), until: time.Duration(r[2]), count: r[3], shard: uint32(r[4])}
}

// step is how far a handler's call is.
type step uint8

const (
	stepNone step = iota
	stepBegun
	stepDone
	stepFenced // done, and the store refused its write: somebody with a higher fence had written
)

// handled is one note of an entity.
type handled struct {
	step   step
	ask    bool
	target uint16
	sender uint32
	number uint64 // of the message at its sender
	from   time.Duration
	until  time.Duration // zero: the handler has not returned
	birth  uint64        // the fence
	low    uint64
}

func (h *handled) record() (r record) {
	r[0] = uint64(h.step) | uint64(h.target)<<16 | uint64(h.sender)<<32
	if h.ask {
		r[0] |= 1 << 8
	}
	r[1] = h.number
	r[2], r[3], r[4], r[5] = uint64(h.from), uint64(h.until), h.birth, h.low
	return r
}

func handledOf(r record) handled {
	return handled{step: step(r[0]), ask: r[0]>>8&1 == 1, target: uint16(r[0] >> 16), sender: uint32(r[0] >> 32),
		number: r[1], from: time.Duration(r[2]), until: time.Duration(r[3]), birth: r[4], low: r[5]}
}

// fenceWords returns a fence as two numbers that compare as it does.
func fenceWords(f kith.Fence) (high, low uint64) {
	b := [16]byte(f)
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// note writes a whole record; the first word last.
func (j *journal) note(n int, r record) {
	for w := recordWords - 1; w >= 0; w-- {
		j.put(n, w, r[w])
	}
}

// messageBytes is the length of a message: its sender, and its number there.
const messageBytes = 13

func appendMessage(b []byte, sender uint32, number uint64, ask bool) []byte {
	b = binary.LittleEndian.AppendUint32(b, sender)
	b = binary.LittleEndian.AppendUint64(b, number)
	if ask {
		return append(b, 1)
	}
	return append(b, 0)
}

func splitMessage(b []byte) (sender uint32, number uint64, ask, ok bool) {
	if len(b) != messageBytes {
		return 0, 0, false, false
	}
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:]), b[12] == 1, true
}
