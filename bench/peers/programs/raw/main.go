// Command raw is the limit beside the peers: blocking net.Conn and no more. Variants: "bulk" blocks of one mebibyte,
// counted in bytes; "" frames of sixteen bytes and a payload behind a shared write buffer, or ping-pong.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/rig"
)

// header is what stands before a payload: its length, and zeros up to the sixteen bytes of an id.
const header = bench.IDBytes

// buffer is the size of the write buffer and of the reader's.
const buffer = 64 << 10

// What the first byte of a connection asks the receiver to do with the rest.
const (
	serveBulk   = 'b'
	serveFrames = 'f'
	servePong   = 'p'
)

var counted atomic.Uint64

func main() {
	rig.Main(&rig.Program{Serve: serve, Dial: dial, Counted: counted.Load})
}

func serve(context.Context, *rig.Inbound) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go receive(c)
		}
	}()
	return l.Addr().String(), nil
}

func receive(c net.Conn) {
	defer c.Close()
	what := make([]byte, 1)
	if _, err := io.ReadFull(c, what); err != nil {
		return
	}
	switch what[0] { // what goes wrong shows at the sender: its connection ends
	case serveBulk:
		block := make([]byte, 1<<20)
		for {
			n, err := c.Read(block)
			counted.Add(uint64(n))
			if err != nil {
				return
			}
		}
	case servePong:
		_ = bench.Pong(c)
	case serveFrames:
		r := bufio.NewReaderSize(c, buffer)
		for {
			head, err := r.Peek(header)
			if err != nil {
				return
			}
			if _, err := r.Discard(header + int(binary.LittleEndian.Uint32(head))); err != nil {
				return
			}
			counted.Add(1)
		}
	}
}

func dial(_ context.Context, addr string) (rig.Sender, error) { return sender(addr), nil }

// sender is the receiver's address; each load has a connection of its own.
type sender string

// Load implements rig.Sender.
func (s sender) Load(ctx context.Context, l rig.Load) (rig.Result, error) {
	if l.Work == rig.Ask && l.Inflight == 1 {
		c, err := s.connect(ctx, servePong)
		if err != nil {
			return rig.Result{}, err
		}
		took, err := bench.Ping(c, l.Duration())
		if err != nil {
			return rig.Result{}, err
		}
		return rig.Result{Sent: uint64(took.Count()), P50: bench.Micros(took.Quantile(50)),
			P99: bench.Micros(took.Quantile(99))}, nil
	}
	if l.Work != rig.Tell {
		return rig.Result{}, errors.New("raw has tells and one ask in flight only")
	}
	if l.Variant == "bulk" {
		c, err := s.connect(ctx, serveBulk)
		if err != nil {
			return rig.Result{}, err
		}
		return rig.Result{}, bench.BulkSend(c, l.Duration())
	}
	c, err := s.connect(ctx, serveFrames)
	if err != nil {
		return rig.Result{}, err
	}
	defer c.Close()
	var mu sync.Mutex
	w := bufio.NewWriterSize(c, buffer)
	frames := make([][]byte, rig.Senders)
	client := rig.Client{
		Tell: func(lane, _ int, payload []byte) error {
			if frames[lane] == nil {
				frames[lane] = make([]byte, header+len(payload))
				binary.LittleEndian.PutUint32(frames[lane], uint32(len(payload)))
			}
			mu.Lock()
			defer mu.Unlock()
			_, err := w.Write(frames[lane])
			return err
		},
		Flush: func(int) error {
			mu.Lock()
			defer mu.Unlock()
			return w.Flush()
		},
	}
	return client.Load(ctx, l)
}

func (s sender) connect(ctx context.Context, what byte) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", string(s))
	if err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte{what}); err != nil {
		return nil, fmt.Errorf("%w", errors.Join(err, c.Close()))
	}
	return c, nil
}
