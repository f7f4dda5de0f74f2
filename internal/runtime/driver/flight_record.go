// Flight record: what the node was given and decided lately, written when somebody asks for it, and to a file when the
// node ends unasked.

package driver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shutdown"
)

// FlightRecord is the part of a Config that is about the flight record; the root package documents its fields.
type FlightRecord struct {
	Bytes     int
	Directory string
}

const (
	flightPrefix = "flight-"
	flightSuffix = ".kith"
	flightFiles  = 8               // that are kept in a directory
	flightWait   = 5 * time.Second // how long the end of a node waits for one that is being written
)

// ErrNoFlightRecord is wrapped when nothing is recorded.
var ErrNoFlightRecord = flight.ErrEmpty

// withDefaults fills in what is zero; dir is the node's own directory.
func (f FlightRecord) withDefaults(dir string) FlightRecord {
	orDefault(&f.Bytes, flight.DefaultBytes)
	orDefault(&f.Directory, dir)
	return f
}

func (f FlightRecord) validate(fault func(ok bool, format string, args ...any)) {
	fault(f.Bytes < 0 || f.Bytes >= flight.MinBytes && f.Bytes <= flight.MaxBytes,
		"FlightRecord.Bytes is %d, must be %d to %d, or negative for none", f.Bytes, flight.MinBytes, flight.MaxBytes)
}

// recorded makes the node.
func recorded(d *Driver, cfg node.Config) *flight.Node {
	return flight.New(cfg, max(0, d.cfg.FlightRecord.Bytes), func(why error) {
		d.log.Warn("the flight record goes no further", "node", d.self, "error", why)
	})
}

// flightRecord returns the record as of now. Control goroutine.
func flightRecord(d *Driver, why string) (*flight.Record, error) {
	r, err := d.control.node.Record()
	if err != nil {
		return nil, err
	}
	r.Node, r.Cluster, r.Why = d.self.String(), d.cfg.Name, why
	r.Started, r.Written = d.start, time.Now()
	return r, nil
}

// WriteFlight writes the flight record as of now to w; see kith.Node.WriteFlightRecord.
func WriteFlight(ctx context.Context, d *Driver, w io.Writer) error {
	type answer struct {
		r   *flight.Record
		err error
	}
	a, err := asked(ctx, d, func(*node.Node) (a answer) {
		a.r, a.err = flightRecord(d, "asked for")
		return a
	})
	if err == nil {
		err = a.err
	}
	if err == nil {
		err = a.r.Write(w)
	}
	if err != nil {
		return fmt.Errorf("kith: flight record: %w", err)
	}
	return nil
}

// abnormal are the ends that leave a flight record behind.
var abnormal = []membership.EndKind{membership.EndDowned, membership.EndRemoved, membership.EndIsolated,
	membership.EndDuplicate}

// keepFlight writes the flight record to a file when the node ends other than by a command. It waits for nothing.
// Control goroutine.
func keepFlight(d *Driver, why *shutdown.EndedError) {
	if slices.Contains(abnormal, why.Kind) {
		writeFlight(d, why.Kind.String(), why.Error())
	}
}

// awaitFlight waits for what is being written. Control goroutine.
func awaitFlight(d *Driver) {
	if written := d.control.flying; written != nil {
		patience := time.NewTimer(flightWait)
		defer patience.Stop()
		select {
		case <-written:
		case <-patience.C:
			d.log.Error("the flight record is not written in time", "directory", d.cfg.FlightRecord.Directory)
		}
	}
}

// panicking is deferred by the control goroutine: a panic there ends the process, and its cause is in the record. It
// does not recover, so that the trace is that of the panic.
func panicking(d *Driver, ended *bool) {
	if *ended {
		return
	}
	writeFlight(d, "panic", "the control goroutine panicked")
	awaitFlight(d)
}

// stoppedFlight writes the flight record when the resolver has stopped this node: it may live on, and the record would
// lose it. Control goroutine.
func stoppedFlight(d *Driver, s *node.Suspend) {
	if s != nil && s.On && s.Resolver {
		writeFlight(d, "stopped", s.Why)
	}
}

// writeFlight starts a goroutine that writes the flight record to a file, behind the one before. Control goroutine.
func writeFlight(d *Driver, what, why string) {
	dir := d.cfg.FlightRecord.Directory
	if dir == "" || d.cfg.FlightRecord.Bytes < 0 {
		return
	}
	r, err := flightRecord(d, why)
	if err != nil {
		d.log.Error("no flight record", "why", why, "error", err)
		return
	}
	before, done := d.control.flying, make(chan struct{})
	d.control.flying = done
	name := fmt.Sprintf("%s%s-%s-%s%s", flightPrefix, r.Written.UTC().Format("20060102T150405.000000000"),
		strings.Map(fileLetter, d.self.Addr.String()), what, flightSuffix)
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		path, err := storeFlight(dir, name, r)
		if err != nil {
			d.log.Error("the flight record could not be written", "directory", dir, "why", why, "error", err)
			return
		}
		d.log.Warn("flight record written", "file", path, "why", why, "verbs", r.Verbs, "bytes", r.Bytes)
	}()
}

// fileLetter keeps what every file system bears in a name.
func fileLetter(r rune) rune {
	if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '_'
}

// storeFlight writes a record to a new file of a directory, which is made, and removes the oldest ones there above
// flightFiles.
func storeFlight(dir, name string, r *flight.Record) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "."+flightPrefix)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = r.Write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	old, err := filepath.Glob(filepath.Join(dir, flightPrefix+"*"+flightSuffix)) // by name, which is by time
	if err != nil {
		return "", err
	}
	for _, p := range old[:max(0, len(old)-flightFiles)] {
		if err := os.Remove(p); err != nil && !os.IsNotExist(err) {
			return "", err
		}
	}
	return path, nil
}
