// Baselines over raw TCP: bulk bytes one way, and ping-pong with the sizes that an ask puts on the wire.

package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// bulkBlock is the size of one bulk write and of the reader's buffer.
const bulkBlock = 1 << 20

// BulkSend writes blocks of one mebibyte to c for d and closes it.
func BulkSend(c net.Conn, d time.Duration) error {
	defer c.Close()
	block := make([]byte, bulkBlock)
	for end := time.Now().Add(d); time.Now().Before(end); {
		if _, err := c.Write(block); err != nil {
			return fmt.Errorf("bulk write: %w", err)
		}
	}
	return nil
}

// BulkReceive reads c to its end and returns how many bytes came and how long that took from the first of them on.
func BulkReceive(c net.Conn) (bytes int64, took time.Duration, err error) {
	defer c.Close()
	block := make([]byte, bulkBlock)
	var begin time.Time
	for {
		n, err := c.Read(block)
		if begin.IsZero() {
			begin = time.Now() // the first block only starts the clock
		} else {
			bytes += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return bytes, time.Since(begin), nil
		case err != nil:
			return bytes, time.Since(begin), fmt.Errorf("bulk read: %w", err)
		}
	}
}

// PingSize and PongSize are what an ask and its answer with 64 bytes of payload each put on the wire.
const (
	PingSize = FrameBytes
	PongSize = replyBytes
)

// Pong answers pings on c until its other side closes it.
func Pong(c net.Conn) error {
	defer c.Close()
	ping, pong := make([]byte, PingSize), make([]byte, PongSize)
	for {
		if _, err := io.ReadFull(c, ping); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("ping read: %w", err)
		}
		if _, err := c.Write(pong); err != nil {
			return fmt.Errorf("pong write: %w", err)
		}
	}
}

// Ping plays ping-pong on c for d, after a tenth of that which does not count, and closes c.
func Ping(c net.Conn, d time.Duration) (*Latency, error) {
	defer c.Close()
	ping, pong := make([]byte, PingSize), make([]byte, PongSize)
	l := NewLatency()
	warm := time.Now().Add(d / 10)
	for end := warm.Add(d); ; {
		begin := time.Now()
		if begin.After(end) && l.Count() > 0 { // on a machine that stalls, one answer at least
			return l, nil
		}
		if _, err := c.Write(ping); err != nil {
			return nil, fmt.Errorf("ping write: %w", err)
		}
		if _, err := io.ReadFull(c, pong); err != nil {
			return nil, fmt.Errorf("pong read: %w", err)
		}
		if begin.After(warm) {
			l.Record(time.Since(begin))
		}
	}
}
