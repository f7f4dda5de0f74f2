// The store: it lives in the harness, behind a socket of the file system, so that no fault of the network touches it,
// and takes a write only under a fence that is not below the highest it has seen for that entity.

package chaos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// store is the server's side.
type store struct {
	ln   net.Listener
	busy sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	highest map[uint16][2]uint64 // by entity
	writes  uint64               // taken
	refused uint64               // under a fence that was overtaken
}

// A write is the entity, the fence, and nothing else: what is stored does not matter here. Its answer is a byte.
const (
	writeBytes   = 2 + 16
	writeTaken   = 1
	writeRefused = 2
)

func newStore(path string) (*store, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &store{ln: ln, conns: map[net.Conn]bool{}, highest: map[uint16][2]uint64{}}
	s.busy.Go(s.accept)
	return s, nil
}

func (s *store) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.busy.Go(func() { s.serve(c) })
	}
}

func (s *store) serve(c net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		_ = c.Close()
	}()
	var b [writeBytes]byte
	for {
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return
		}
		answer := [1]byte{writeTaken}
		if !s.write(binary.LittleEndian.Uint16(b[:]), binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:])) {
			answer[0] = writeRefused
		}
		if _, err := c.Write(answer[:]); err != nil {
			return
		}
	}
}

// write takes a write unless a higher fence was there before.
func (s *store) write(entity uint16, high, low uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.highest[entity]
	if high < was[0] || high == was[0] && low < was[1] {
		s.refused++
		return false
	}
	s.highest[entity] = [2]uint64{high, low}
	s.writes++
	return true
}

// counts returns how many writes were taken and refused.
func (s *store) counts() (writes, refused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.refused
}

func (s *store) close() error {
	err := s.ln.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.busy.Wait()
	return err
}

// errFenced is what an entity returns when the store refused its write.
var errFenced = errors.New("a higher fence was there before")

// storeTime bounds one write.
const storeTime = 10 * time.Second

// storeClient writes to the store over one connection, one write at a time.
type storeClient struct {
	mu sync.Mutex
	c  net.Conn
}

func dialStore(path string) (*storeClient, error) {
	c, err := net.DialTimeout("unix", path, storeTime)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &storeClient{c: c}, nil
}

// write writes under a fence and waits for the answer.
func (s *storeClient) write(entity uint16, high, low uint64) error {
	b := binary.LittleEndian.AppendUint16(make([]byte, 0, writeBytes), entity)
	b = binary.LittleEndian.AppendUint64(b, high)
	b = binary.LittleEndian.AppendUint64(b, low)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.c.Write(b); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(s.c, answer[:]); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if answer[0] == writeRefused {
		return errFenced
	}
	return nil
}
