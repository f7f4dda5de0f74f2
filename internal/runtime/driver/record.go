// Record: what this node remembers of its cluster, in a file that the next process in its directory reads (JOIN-1).

package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/base/fileid"
	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shutdown"
)

const (
	recordName   = "membership.json"
	recordFormat = 1
	recordMost   = 1 << 20         // bytes of a file that is read; the largest record is a third of it
	recordWait   = 5 * time.Second // how long the end of the node waits for the last one
	recordSaid   = time.Minute     // how often the log says that it is not written
)

// ErrRecord is wrapped by errors of Start about Config.Directory: what it holds is damaged or of another cluster, or it
// cannot be used.
var ErrRecord = errors.New("kith: record of the membership")

// recordFile is the file. Checksum is of all other fields as they are written. Node is the node that kept it: the
// address, and behind a blank the name of the directory (package fileid) where that is known.
type recordFile struct {
	Format    int      `json:"format"`
	Name      string   `json:"cluster_name"`
	Node      string   `json:"node"`
	ClusterID string   `json:"cluster_id"`
	Birth     uint64   `json:"birth"`
	Highest   uint64   `json:"highest_birth"`
	Counts    bool     `json:"counts"`
	Others    []string `json:"others"`
	Newcomers int      `json:"newcomers,omitempty"`
	More      int      `json:"more"`
	StandBy   []string `json:"bystanders,omitempty"`
	Checksum  string   `json:"checksum"`
}

func (f recordFile) sum() string {
	f.Checksum = ""
	b, _ := json.Marshal(f) // strings and numbers: never fails
	return strconv.FormatUint(xxhash.Sum64(b), 16)
}

// recordKeeper keeps the record of one node, in its directory or, without one, in memory for the next incarnation of
// this process. All but note and finish belongs to its goroutine, which only a directory needs.
type recordKeeper struct {
	dir, name, node, role string
	home                  string // of the directory, empty where that is not known
	was                   keptBy
	log                   *slog.Logger
	lock                  *os.File
	memory                *membership.Memory
	written               func(membership.Record) // tells the node
	noted                 atomic.Pointer[membership.View]
	wake                  chan struct{}
	last                  chan func(membership.Record, *membership.View) membership.Record
	over                  chan struct{}
	final                 membership.Record // what the end of the node made of it, without a directory
	failed                int               // writes in a row
	said                  time.Time         // when the log had it last
}

// legacy is what a node leaves to the one that follows it in this process.
type legacy struct {
	record   membership.Record // where there is no directory
	goesOver bool              // the cluster of the record was left for another one: nobody of it is asked
}

// openRecord takes the directory for this process and reads what it holds. Without a directory the record is what the
// last incarnation in this process left, if it left one.
func openRecord(cfg Config, left legacy) (*recordKeeper, error) {
	r := &recordKeeper{dir: cfg.Directory, name: cfg.Name, role: cfg.node().RecordRole(), log: cfg.Logger,
		wake: make(chan struct{}, 1), over: make(chan struct{}),
		last: make(chan func(membership.Record, *membership.View) membership.Record, 1)}
	if r.dir == "" {
		r.memory = membership.NewMemory(left.record, r.role)
		return r, nil
	}
	err := os.MkdirAll(r.dir, 0o700)
	if mode, loose := files.Loose(r.dir); loose {
		r.log.Warn("others can write to the directory of the record: whoever does decides which cluster this node carries on",
			"directory", r.dir, "mode", mode.String())
	}
	if err == nil {
		r.lock, err = lockDirectory(filepath.Join(r.dir, "lock"))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: directory %s: %w", ErrRecord, r.dir, err)
	}
	r.home = fileid.Of(r.lock)
	rec, was, err := readRecord(r.path(), r.name)
	if err != nil {
		r.release()
		return nil, err
	}
	if left.goesOver {
		rec = rec.After(membership.EndRejoin, nil, nil, r.role)
	}
	r.was = was
	r.memory = membership.NewMemory(rec, r.role)
	return r, nil
}

func (r *recordKeeper) path() string { return filepath.Join(r.dir, recordName) }

func (r *recordKeeper) release() {
	if r.lock != nil {
		_ = r.lock.Close() // which gives the lock up
	}
}

// readRecord reads the file at path, of a cluster of that name; one that is not there remembers nothing. One by which
// nobody could carry its cluster on is read whatever the name: a cluster that has ended may get another.
func readRecord(path, name string) (rec membership.Record, was keptBy, err error) {
	b, err := files.ReadOwn(path, recordMost)
	if errors.Is(err, os.ErrNotExist) {
		return rec, was, nil
	}
	if err != nil && !errors.Is(err, files.ErrTooLarge) { // it may be whole: no word of removing it
		if p := (*os.PathError)(nil); errors.As(err, &p) {
			err = p.Err
		}
		return rec, was, fmt.Errorf("%w: %s cannot be read: %w", ErrRecord, path, err)
	}
	var f recordFile
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	switch {
	case err != nil:
	case f.Format != recordFormat:
		err = fmt.Errorf("format %d, this build reads %d", f.Format, recordFormat)
	case f.Checksum != f.sum():
		err = errors.New("the checksum is wrong")
	case f.Name != name && (f.Counts || len(f.Others) > 0 || f.More > 0):
		return rec, was, fmt.Errorf("%w: %s is of the cluster %q, this node's is %q: give the node a directory of its own, "+
			"or remove the file if nothing of that cluster lives", ErrRecord, path, f.Name, name)
	default:
		rec, err = f.read()
		var node string
		node, was.home, _ = strings.Cut(f.Node, " ")
		was.addr, _ = peer.ParseAddr(node)
	}
	if err != nil {
		return rec, was, fmt.Errorf("%w: %s is damaged: %w; remove it, and start the node with NeverForm (--never-form) "+
			"while its cluster may live", ErrRecord, path, err)
	}
	return rec, was, nil
}

// keptBy is the node that kept a record: at which address, and in which directory.
type keptBy struct {
	addr peer.Addr // zero: not known
	home string    // empty: not known
}

// known returns what the file held when the node started that is at self, and where it was kept if that was elsewhere.
// A directory that has come with its node to another address is its own still. A copy is not: the node that kept the
// record may live and carry its cluster on, alone, so it counts as one that could, and this node as none.
func (r *recordKeeper) known(self peer.Addr) (rec membership.Record, former peer.Addr) {
	rec = r.memory.Kept()
	if !rec.Known() || r.was.addr.IsZero() || r.was.addr == self {
		return rec, former
	}
	if r.home == r.was.home || r.home == "" || r.was.home == "" {
		return rec, r.was.addr
	}
	r.log.Warn("the directory is a copy of another node's, whose cluster may live", "directory", r.dir, "kept_by",
		r.was.addr.String(), "cluster", clusterName(rec.ClusterID))
	rec = rec.Copied(r.was.addr, self)
	r.memory = membership.NewMemory(rec, r.role)
	return rec, r.was.addr
}

func (f recordFile) read() (rec membership.Record, err error) {
	rec = membership.Record{Birth: f.Birth, Highest: f.Highest, Counts: f.Counts, Newcomers: f.Newcomers,
		More: f.More}
	if rec.ClusterID, err = strconv.ParseUint(f.ClusterID, 16, 64); err != nil {
		return rec, err
	}
	if rec.ClusterID == 0 || f.More < 0 || len(f.Others) > membership.MaxRemembered || f.Newcomers < 0 ||
		f.Newcomers > len(f.Others) || len(f.StandBy) > membership.MaxRemembered {
		return rec, fmt.Errorf("cluster id %s, %d others, %d of them new, %d more, and %d bystanders", f.ClusterID,
			len(f.Others), f.Newcomers, f.More, len(f.StandBy))
	}
	if rec.Others, err = addresses(f.Others); err == nil {
		rec.Bystanders, err = addresses(f.StandBy)
	}
	return rec, err
}

// addresses reads addresses in their order: a person may have edited the file.
func addresses(texts []string) (list []peer.Addr, err error) {
	for _, s := range texts {
		a, err := peer.ParseAddr(s)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	slices.SortFunc(list, peer.Addr.Compare)
	return list, nil
}

// start begins to write what the node at that address notes, and tells written of each record that is.
func (r *recordKeeper) start(node string, written func(membership.Record)) {
	r.node, r.written = node, written
	if r.dir != "" {
		go r.run()
	}
}

// note hands a view on. Control goroutine; it never waits.
func (r *recordKeeper) note(v *membership.View) {
	if v.ClusterID == 0 {
		return
	}
	if m, ok := v.SelfMember(); !ok || m.Status == membership.Down {
		return
	}
	r.noted.Store(v)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// finish writes the last record, which change makes of the one before and of the last view that was noted, nil when
// there was none, and gives the directory up. One of no cluster removes the file. A disk that does not answer is left
// behind. Without a directory the record stays in memory, for the next node.
func (r *recordKeeper) finish(change func(membership.Record, *membership.View) membership.Record) {
	if r.dir == "" {
		v := r.noted.Load()
		if v != nil {
			r.memory.Note(v)
		}
		r.final = change(r.memory.Wanted(), v)
		return
	}
	r.last <- change
	patience := time.NewTimer(recordWait)
	defer patience.Stop()
	select {
	case <-r.over:
	case <-patience.C:
		r.log.Error("the record of the membership is not written: the disk does not answer", "directory", r.dir)
	}
}

func (r *recordKeeper) run() {
	defer close(r.over)
	defer r.release()
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if v := r.noted.Load(); v != nil {
			r.memory.Note(v)
		}
		if at, ok := r.memory.Due(); ok {
			if wait := at - time.Since(began); wait > 0 {
				timer.Reset(wait)
			} else {
				rec := r.memory.Wanted()
				if ok = r.write(rec); ok {
					r.written(rec)
				}
				r.memory.Wrote(time.Since(began), rec, ok)
				continue
			}
		}
		select {
		case change := <-r.last:
			v := r.noted.Load()
			if v != nil {
				r.memory.Note(v)
			}
			if rec := change(r.memory.Wanted(), v); !rec.Equal(r.memory.Kept()) {
				r.write(rec)
			}
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// write replaces the file as a whole, so that a process that dies leaves the old one or the new one. It is tried again
// each second while it fails, and the log has that once a minute.
func (r *recordKeeper) write(rec membership.Record) bool {
	err := r.replace(rec)
	if err == nil {
		if r.failed > 0 {
			r.log.Info("the record of the membership is written again", "file", r.path(), "failed", r.failed)
		}
		r.failed = 0
		return true
	}
	if r.failed++; r.failed == 1 || time.Since(r.said) >= recordSaid {
		r.said = time.Now()
		r.log.Error("the record of the membership is not written: after a restart this node may not know its cluster",
			"file", r.path(), "error", err, "failed", r.failed)
	}
	return false
}

func (r *recordKeeper) replace(rec membership.Record) error {
	if !rec.Known() {
		if err := os.Remove(r.path()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return files.SyncDirectory(r.dir)
	}
	f := recordFile{Format: recordFormat, Name: r.name, Node: strings.TrimSpace(r.node + " " + r.home),
		ClusterID: strconv.FormatUint(rec.ClusterID, 16),
		Birth:     rec.Birth, Highest: rec.Highest, Counts: rec.Counts, Newcomers: rec.Newcomers,
		More: rec.More, Others: []string{}}
	for _, a := range rec.Others {
		f.Others = append(f.Others, a.String())
	}
	for _, a := range rec.Bystanders {
		f.StandBy = append(f.StandBy, a.String())
	}
	f.Checksum = f.sum()
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(r.path(), append(b, '\n'), 0o600)
}

// recordAfter is what the end of a node makes of its record. yielded replaces it, unless nil.
func recordAfter(why *shutdown.EndedError, yielded *membership.Record, last *membership.View,
	role string) func(membership.Record, *membership.View) membership.Record {
	return func(rec membership.Record, noted *membership.View) membership.Record {
		if noted == nil {
			last = nil // it was never admitted
		}
		return rec.After(why.Kind, yielded, last, role)
	}
}

// CheckFiles returns what Start would refuse of the files that c names; it writes nothing.
func (c Config) CheckFiles() error {
	var errs []error
	if c.TLS.On() {
		if _, err := trust.New(trust.Config{TLS: c.TLS, Cluster: c.Name, Now: time.Now, Every: time.Hour}); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrBadConfig, err))
		}
	}
	if c.Directory == "" {
		return errors.Join(errs...)
	}
	if err := files.Usable(c.Directory); err != nil {
		return errors.Join(append(errs, fmt.Errorf("%w: Directory %s: %w", ErrRecord, c.Directory, err))...)
	}
	_, _, err := readRecord(filepath.Join(c.Directory, recordName), c.Name)
	return errors.Join(append(errs, err)...)
}
