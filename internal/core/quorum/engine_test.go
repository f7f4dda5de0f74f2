// The engine in memory is held to what is asked of all.

package quorum

import (
	"testing"

	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/quorum/disk/disktest"
)

func TestMemoryEngine(t *testing.T) {
	var last *MemoryEngine
	disktest.Run(t, func(_ *testing.T, fresh bool) disk.Engine {
		if fresh {
			last = Memory()
		}
		return last
	})
}
