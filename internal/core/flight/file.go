// File: a flight record as bytes that a node leaves behind and another build can name, if not replay.

package flight

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/core/node"
)

// Format is the version of the file's form.
const Format = 1

// Errors of Read; they come wrapped with what was met.
var (
	ErrNoRecord   = errors.New("flight: not a flight record")
	ErrFormat     = errors.New("flight: a form of record that this build does not know")
	ErrDamaged    = errors.New("flight: the record is damaged or cut off")
	ErrOtherBuild = errors.New("flight: recorded by a build whose state looks otherwise")
	ErrEmpty      = errors.New("flight: nothing was recorded")
)

// Magic opens every file; the format follows in one byte.
const Magic = "kithflight"

// The sections of a file: one byte, the length of the content in four, the content, and xxhash of it in eight. All
// numbers are little-endian.
const (
	sectionHeader  byte = 'H' // JSON, for people and for other builds
	sectionConfig  byte = 'C' // node.Config
	sectionState   byte = 'S' // of the node in front of the entries that follow; empty: it is new
	sectionEntries byte = 'E' // time of the last verb before and number of verbs before, 8 bytes each; entries
	sectionEnd     byte = 'Z'
)

// maxSection bounds one section, maxSections how many there are: two stretches.
const (
	maxSection  = MaxBytes
	maxSections = 7
)

// Header is what a record says of itself.
type Header struct {
	Node     string    `json:"node"`
	Cluster  string    `json:"cluster"` // its name
	Started  time.Time `json:"started"` // when the clock of the node stood at zero
	Written  time.Time `json:"written"`
	Why      string    `json:"why"`
	Build    string    `json:"build"`
	Layout   string    `json:"layout"`
	Detector string    `json:"detector"`
	// From and To are the last verb before the record and the last one in it, on the node's clock; From is 0 when the
	// record begins at the start.
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Verbs uint64        `json:"verbs"` // in the record
	Bytes int           `json:"bytes"`
	// LeftOut is how many bytes of what shards handed over are not in the record, but for how many they are.
	LeftOut uint64 `json:"left_out_bytes,omitempty"`
	Over    string `json:"over,omitempty"` // why recording ended before the node did
}

// Record is a flight record.
type Record struct {
	Header
	config    []byte
	stretches []stretch
}

// Record returns what was recorded so far, to be written, which takes no time of the node's; ErrEmpty when it records
// nothing. The caller fills in Node, Cluster, Started, Written and Why.
func (n *Node) Record() (*Record, error) {
	r := n.rec
	if r == nil {
		return nil, ErrEmpty
	}
	rec := &Record{Header: Header{Build: build(), Layout: layout(), Detector: detectorOf(r.cfg), To: r.now}}
	if r.over != nil {
		rec.Over = r.over.Error()
	}
	cfg := r.cfg
	var err error
	if rec.config, err = appendValue(nil, &cfg, 0); err != nil {
		return nil, fmt.Errorf("flight: configuration: %w", err)
	}
	for _, s := range []stretch{r.old, r.cur} {
		if len(s.entries) > 0 {
			rec.stretches = append(rec.stretches, s)
			rec.LeftOut += s.left
		}
	}
	if len(rec.stretches) == 0 {
		return nil, errors.Join(ErrEmpty, r.over)
	}
	rec.sum(r.verbs)
	return rec, nil
}

// sum fills in what the stretches say.
func (r *Record) sum(verbs uint64) {
	r.From, r.Verbs, r.Bytes = r.stretches[0].now, verbs-r.stretches[0].first, 0
	for _, s := range r.stretches {
		r.Bytes += len(s.state) + len(s.entries)
	}
}

func layout() string { return fmt.Sprintf("%016x", Layout()) }

// build names the module's version, and its commit where that is known.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Path + " " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text
}

// Write writes a record.
func (r *Record) Write(w io.Writer) error {
	header, err := json.Marshal(r.Header)
	if err != nil {
		return fmt.Errorf("flight: header: %w", err)
	}
	if _, err = w.Write(append([]byte(Magic), Format)); err != nil {
		return err
	}
	err = errors.Join(section(w, sectionHeader, header), section(w, sectionConfig, r.config))
	for _, s := range r.stretches {
		place := binary.LittleEndian.AppendUint64(nil, uint64(s.now))
		place = binary.LittleEndian.AppendUint64(place, s.first)
		err = errors.Join(err, section(w, sectionState, s.state), section(w, sectionEntries, place, s.entries))
	}
	return errors.Join(err, section(w, sectionEnd))
}

func section(w io.Writer, kind byte, parts ...[]byte) error {
	h, n := xxhash.New(), 0
	for _, p := range parts {
		n += len(p)
	}
	head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(n))
	_, _ = h.Write(head) // a hash takes everything
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, p := range parts {
		_, _ = h.Write(p)
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	_, err := w.Write(binary.LittleEndian.AppendUint64(nil, h.Sum64()))
	return err
}

// Read reads a record. Of one of another build the header is returned too, with ErrOtherBuild.
func Read(from io.Reader) (*Record, error) {
	begin := make([]byte, len(Magic)+1)
	if _, err := io.ReadFull(from, begin); err != nil || string(begin[:len(Magic)]) != Magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrNoRecord, Magic)
	}
	if begin[len(Magic)] != Format {
		return nil, fmt.Errorf("%w: %d, this build knows %d", ErrFormat, begin[len(Magic)], Format)
	}
	r := &Record{}
	for n := 0; ; n++ {
		kind, body, err := readSection(from)
		if err != nil {
			return r.asFar(err)
		}
		if kind == sectionEnd {
			break
		}
		if n == maxSections {
			return r.asFar(fmt.Errorf("%w: too many sections", ErrDamaged))
		}
		if err := r.take(n, kind, body); err != nil {
			return r.asFar(err)
		}
	}
	if len(r.stretches) == 0 || len(r.stretches[len(r.stretches)-1].entries) == 0 {
		return r.asFar(fmt.Errorf("%w: nothing is in it", ErrDamaged))
	}
	r.sum(r.Verbs + r.stretches[0].first)
	return r, nil
}

// asFar returns a record if its header is known, together with an error of another build, and nothing otherwise.
func (r *Record) asFar(err error) (*Record, error) {
	if errors.Is(err, ErrOtherBuild) {
		return r, err
	}
	return nil, err
}

// take takes the n-th section. Their order is fixed.
func (r *Record) take(n int, kind byte, body []byte) error {
	want := []byte{sectionHeader, sectionConfig, sectionState, sectionEntries, sectionState, sectionEntries}
	if n >= len(want) || kind != want[n] {
		return fmt.Errorf("%w: section %d is of kind %q", ErrDamaged, n, kind)
	}
	switch kind {
	case sectionHeader:
		if err := json.Unmarshal(body, &r.Header); err != nil {
			return fmt.Errorf("%w: header: %w", ErrDamaged, err)
		}
		if r.Layout != layout() {
			return fmt.Errorf("%w: layout %q, this build has %q; replay it with %q", ErrOtherBuild, r.Layout, layout(), r.Build)
		}
	case sectionConfig:
		r.config = body
	case sectionState:
		r.stretches = append(r.stretches, stretch{state: body})
	case sectionEntries:
		if len(body) < 16 {
			return fmt.Errorf("%w: %d bytes of entries", ErrDamaged, len(body))
		}
		s := &r.stretches[len(r.stretches)-1]
		s.now = time.Duration(binary.LittleEndian.Uint64(body))
		s.first, s.entries = binary.LittleEndian.Uint64(body[8:]), body[16:]
	}
	return nil
}

func readSection(from io.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, fmt.Errorf("%w: no end", ErrDamaged)
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > maxSection {
		return 0, nil, fmt.Errorf("%w: a section of %d bytes", ErrDamaged, size)
	}
	var b bytes.Buffer // grows as bytes come: the length is nobody's word yet
	if n, err := io.CopyN(&b, from, int64(size)); err != nil {
		return 0, nil, fmt.Errorf("%w: a section of %d bytes has %d", ErrDamaged, size, n)
	}
	var sum [8]byte
	if _, err := io.ReadFull(from, sum[:]); err != nil {
		return 0, nil, fmt.Errorf("%w: no checksum", ErrDamaged)
	}
	h := xxhash.New()
	_, _ = h.Write(head[:])
	_, _ = h.Write(b.Bytes())
	if h.Sum64() != binary.LittleEndian.Uint64(sum[:]) {
		return 0, nil, fmt.Errorf("%w: the checksum of section %q is wrong", ErrDamaged, head[0])
	}
	return head[0], b.Bytes(), nil
}

// Config returns the configuration of the node that was recorded.
func (r *Record) Config() (cfg node.Config, err error) {
	d := decoder{b: r.config}
	if err := d.top(&cfg); err != nil {
		return node.Config{}, fmt.Errorf("%w: configuration: %w", ErrDamaged, err)
	}
	return cfg, nil
}

func extra(rest []byte) error {
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes too many", errBroken, len(rest))
	}
	return nil
}
