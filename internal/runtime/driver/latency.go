// Latency: one of so many calls of a handler (package exec), and of asks, is timed and reported to Config.Latency.

package driver

import (
	"time"

	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
)

// Measure says what a duration given to Config.Latency is (package stats).
type Measure = stats.Measure

// The measures.
const (
	HandlerTime = stats.HandlerTime
	AskTime     = stats.AskTime
)

// DefaultLatencyEvery and MaxLatencyEvery bound Config.LatencyEvery.
const (
	DefaultLatencyEvery = 64
	MaxLatencyEvery     = 1 << 20
)

// askSampling is one of how many asks is timed, zero when nobody wants to know.
func (c Config) askSampling() int {
	if c.Latency == nil {
		return 0
	}
	return c.LatencyEvery
}

// tellTime tells how long an ask that is timed took, when it was answered. The goroutine that settles it calls it.
func (w *askWaiter) tellTime(by *callback.Guard, reason route.Reason) {
	if reason == route.OK {
		d, name, took := w.region.d, w.region.typ.Name, time.Since(w.began)
		_ = by.Call("Latency", func() { d.cfg.Latency(AskTime, name, took) })
	}
}
