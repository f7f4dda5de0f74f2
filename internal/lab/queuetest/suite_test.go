// The suite itself, over the store in memory.

package queuetest

import (
	"testing"

	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

// TestMemory: queues keep their promises over the store in memory (SHD-10).
func TestMemory(t *testing.T) {
	t.Parallel()
	m := store.Memory()
	Run(t, storetest.Engine{Open: func(*testing.T) store.Store { return m }})
}
