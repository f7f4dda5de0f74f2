// The longest silence, asked of the detectors themselves.

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
)

// mute is a detector that never says until when; its verdicts cannot be bounded.
type mute struct{ fd.Detector }

func (mute) Deadline() (time.Duration, bool) { return 0, false }

// TestSilenceBound: the first heartbeat leaves phi accrual with the widest deviation, and so the most patient (FD-1).
func TestSilenceBound(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		cfg  Config
		want time.Duration
	}{
		"default":    {Config{}, 5327 * ms}, // 1 s + 3 s + 5.226 x 250 ms + 20 ms
		"pause":      {Config{AcceptablePause: 10 * time.Second}, 12327 * ms},
		"interval":   {Config{HeartbeatInterval: 4 * time.Second}, 12246 * ms},
		"threshold":  {Config{Threshold: 12}, 5593 * ms},
		"deviation":  {Config{MinStdDeviation: time.Second}, 9246 * ms},
		"deadline":   {Config{Detector: fd.Deadline}, 4020 * ms},
		"no answers": {Config{Detector: func(s fd.Settings) fd.Detector { return mute{fd.Deadline(s)} }}, 20 * ms},
	} {
		require.InDelta(t, c.want, c.cfg.SilenceBound(), float64(ms), name)
	}
}
