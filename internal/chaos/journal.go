// Journals: what a process notes of its messages, in files that it maps into memory. A note survives the process that
// made it, costs no system call, and can be read while that process stands still.

package chaos

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
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
