// Profile: CPU, heap, mutex, block and trace of this process, written to files that go tool pprof and go tool trace
// read.

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"time"
)

// traceLength bounds the trace: a busy second fills some hundred megabytes.
const traceLength = 200 * time.Millisecond

// blockRate is the blocked time in nanoseconds of which one event is sampled on average.
const blockRate = 10_000

// mutexFraction is which part of contention events the mutex profile samples.
const mutexFraction = 100

// Profile is a recording under way. Only one can be in a process at a time.
type Profile struct {
	dir, prefix string
	cpu         *os.File

	mu     sync.Mutex
	traced *os.File // nil once the trace is closed
}

// StartProfile begins to record into dir, which it makes: prefix.cpu.pprof, prefix.heap.pprof, prefix.mutex.pprof,
// prefix.block.pprof and prefix.trace, the last for the first 200 ms only.
func StartProfile(dir, prefix string) (*Profile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	p := &Profile{dir: dir, prefix: prefix}
	var err error
	if p.cpu, err = p.create("cpu.pprof"); err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(p.cpu); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), p.cpu.Close())
	}
	if p.traced, err = p.create("trace"); err == nil {
		err = trace.Start(p.traced)
	}
	if err != nil {
		pprof.StopCPUProfile()
		return nil, errors.Join(fmt.Errorf("profile: %w", err), p.cpu.Close())
	}
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockRate)
	time.AfterFunc(traceLength, func() { _ = p.stopTrace() })
	return p, nil
}

func (p *Profile) create(name string) (*os.File, error) {
	f, err := os.Create(filepath.Join(p.dir, p.prefix+"."+name))
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return f, nil
}

func (p *Profile) stopTrace() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.traced == nil {
		return nil
	}
	trace.Stop()
	err := p.traced.Close()
	p.traced = nil
	return err
}

// Stop ends the recording and writes what is left.
func (p *Profile) Stop() error {
	pprof.StopCPUProfile()
	errs := []error{p.cpu.Close(), p.stopTrace(), p.write("heap"), p.write("mutex"), p.write("block")}
	runtime.SetMutexProfileFraction(0)
	runtime.SetBlockProfileRate(0)
	return errors.Join(errs...)
}

func (p *Profile) write(kind string) error {
	f, err := p.create(kind + ".pprof")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(kind).WriteTo(f, 0), f.Close())
}
