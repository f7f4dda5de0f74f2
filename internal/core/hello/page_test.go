// The hello on the page docs/contributing/wire.md under test: its bytes are what the codec writes.

package hello

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// pageHellos is what the codec writes for every hello block of the page.
func pageHellos() map[string][]byte {
	frame := func(k wire.Kind, body []byte) []byte { return wire.AppendFrame(nil, k, 0, 0, body) }
	there := peer.ID{Addr: peer.MustAddr("127.0.0.1:7356"), Inc: 1}
	return map[string][]byte{
		"dialled": frame(wire.KindHello, Append(nil, &Hello{
			Versions: wire.Spoken(), Lane: wire.LaneData, Generation: 3, Window: 1 << 20, ClusterID: 0x1122, Birth: 0x3344,
			Name: "market", From: peer.ID{Addr: peer.MustAddr("127.0.0.1:7355"), Inc: 0x0102030405060708}, To: there.Addr,
			Settings: []Setting{{"s", "1"}}, Token: Token{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		})),
		"accepted": frame(wire.KindHelloAck, AppendAck(nil, &Ack{wire.Version, there, 0x1122, 0x3344}, wire.Spoken())),
		"refused": frame(wire.KindHelloRefuse, AppendRefusal(nil, &RefusedError{Reason: RefusedVersion,
			Key: "wire version", Ours: "1-12", Theirs: "13-14"})),
	}
}

// TestPageRefusals holds that the page lists every reason to refuse a hello, by number and name, and those that pass.
func TestPageRefusals(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "contributing", "wire.md"))
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(page), "\nThe reasons: ")
	list, passing, _ := strings.Cut(list, ". ")
	var want, again []string
	for r := Refusal(1); r < RefusalCount; r++ {
		want = append(want, fmt.Sprintf("%d %s", r, r))
		if !r.ForGood() {
			again = append(again, strconv.Itoa(int(r)))
		}
	}
	require.Equal(t, strings.Join(want, ", "), strings.Join(strings.Fields(list), " "))
	n := len(again) - 1
	require.Contains(t, strings.Join(strings.Fields(passing), " "),
		"After "+strings.Join(again[:n], ", ")+" and "+again[n]+" the dialler may try again.")
}

// TestPageHellos holds that the page shows every hello, and exactly as the codec writes it.
func TestPageHellos(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "contributing", "wire.md"))
	require.NoError(t, err)
	shown := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```hello ([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[2]) {
			digits, _, _ := strings.Cut(line, ";")
			shown[block[1]] += strings.Join(strings.Fields(digits), "")
		}
	}
	want := map[string]string{}
	for name, b := range pageHellos() {
		want[name] = hex.EncodeToString(b)
	}
	require.Equal(t, want, shown)
}
