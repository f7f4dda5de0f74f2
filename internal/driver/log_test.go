// Tests of what records look like.

package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func TestRecordsHoldNames(t *testing.T) {
	var buf bytes.Buffer
	id := peer.ID{Addr: peer.MustAddr("127.0.0.1:7355"), Inc: 0xab}
	l := byName(slog.New(slog.NewJSONHandler(&buf, nil))).With("node", id).WithGroup("g")
	l.Warn("text", "peer", id, "lane", wire.LaneData, "status", membership.Up, "error", errors.New("why"), "count", 3)
	var m map[string]any
	require.NoError(t, json.Unmarshal(buf.Bytes(), &m))
	require.Equal(t, "127.0.0.1:7355#ab", m["node"])
	require.Equal(t, map[string]any{"peer": "127.0.0.1:7355#ab", "lane": "data", "status": membership.Up.String(),
		"error": "why", "count": 3.0}, m["g"])
}
