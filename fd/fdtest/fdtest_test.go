// Tests of the suite: our detectors pass it, and each deliberately broken one fails the law that it breaks (FD-1).

package fdtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
)

func TestOurDetectorsConform(t *testing.T) {
	Run(t, fd.PhiAccrual)
	Run(t, fd.Deadline)
}

// notes gathers findings instead of failing.
type notes struct{ strings.Builder }

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) { fmt.Fprintf(n, format+"\n", args...) }

// faulty is a detector with a twist.
type faulty struct {
	fd.Detector
	heartbeat func(fd.Detector, time.Duration)
	available func(fd.Detector, time.Duration) bool
	deadline  func(fd.Detector) (time.Duration, bool)
	phi       func(fd.Detector, time.Duration) float64
}

func (f faulty) Heartbeat(at time.Duration) {
	if f.heartbeat != nil {
		f.heartbeat(f.Detector, at)
		return
	}
	f.Detector.Heartbeat(at)
}

func (f faulty) Available(now time.Duration) bool {
	if f.available != nil {
		return f.available(f.Detector, now)
	}
	return f.Detector.Available(now)
}

func (f faulty) Deadline() (time.Duration, bool) {
	if f.deadline != nil {
		return f.deadline(f.Detector)
	}
	return f.Detector.Deadline()
}

func (f faulty) Phi(now time.Duration) float64 {
	if f.phi != nil {
		return f.phi(f.Detector, now)
	}
	return f.Detector.Phi(now)
}

var sink []byte

func TestBrokenDetectorsAreFound(t *testing.T) {
	shared := fd.Deadline(Settings())
	for law, broken := range map[string]fd.Factory{
		"nothing heard is alive": func(s fd.Settings) fd.Detector {
			return faulty{Detector: fd.Deadline(s), available: func(d fd.Detector, now time.Duration) bool {
				_, ok := d.Deadline()
				return ok && d.Available(now)
			}}
		},
		"one deadline": func(s fd.Settings) fd.Detector {
			return faulty{Detector: fd.PhiAccrual(s), available: func(d fd.Detector, now time.Duration) bool {
				at, ok := d.Deadline()
				return !ok || now <= at
			}}
		},
		"silence is found": func(s fd.Settings) fd.Detector {
			s.Pause = time.Minute
			return fd.Deadline(s)
		},
		"the pause is tolerated": func(s fd.Settings) fd.Detector {
			s.Pause = 0
			return fd.PhiAccrual(s)
		},
		"a heartbeat revives": func(s fd.Settings) fd.Detector {
			return faulty{Detector: fd.Deadline(s), heartbeat: func(d fd.Detector, at time.Duration) {
				if d.Available(at) {
					d.Heartbeat(at)
				}
			}}
		},
		"old stamps are no news": func(s fd.Settings) fd.Detector {
			n := time.Duration(0)
			return faulty{Detector: fd.Deadline(s), heartbeat: func(d fd.Detector, at time.Duration) {
				n++
				d.Heartbeat(at)
			}, deadline: func(d fd.Detector) (time.Duration, bool) {
				at, ok := d.Deadline()
				return at + n, ok
			}}
		},
		"a long silence is no rhythm": poisoned,
		"the same stamps, the same deadline": func(s fd.Settings) fd.Detector {
			asked := time.Duration(0)
			return faulty{Detector: fd.Deadline(s), phi: func(d fd.Detector, now time.Duration) float64 {
				asked++
				return d.Phi(now)
			}, deadline: func(d fd.Detector) (time.Duration, bool) {
				at, ok := d.Deadline()
				return at + asked, ok
			}}
		},
		"suspicion grows": func(s fd.Settings) fd.Detector {
			return faulty{Detector: fd.Deadline(s), phi: func(d fd.Detector, now time.Duration) float64 {
				return -d.Phi(now)
			}}
		},
		"detectors share nothing": func(fd.Settings) fd.Detector { return shared },
		"no allocation": func(s fd.Settings) fd.Detector {
			return faulty{Detector: fd.Deadline(s), heartbeat: func(d fd.Detector, at time.Duration) {
				sink = make([]byte, 100)
				d.Heartbeat(at)
			}}
		},
	} {
		var found notes
		Run(&found, broken)
		require.Contains(t, found.String(), law+": ", "a detector that breaks %q passes", law)
	}
}

// poisoned learns every interval, those that ended in a verdict too.
func poisoned(s fd.Settings) fd.Detector {
	var w fd.Window
	var last time.Duration
	heard := false
	return faulty{Detector: fd.Deadline(s), heartbeat: func(d fd.Detector, at time.Duration) {
		if !heard {
			w, heard = fd.NewWindow(s.MaxSamples), true
			w.Add(s.Interval)
		} else if at > last {
			w.Add(at - last)
		}
		last = max(last, at)
		d.Heartbeat(at)
	}, deadline: func(fd.Detector) (time.Duration, bool) { return last + w.Mean() + s.Pause, heard },
		available: func(_ fd.Detector, now time.Duration) bool { return !heard || now < last+w.Mean()+s.Pause }}
}
