// Tests of a drain that is waited for: what it says when its node ends, or is another one, meanwhile (SHD-9, OPS-1).

package operate

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A drain that is waited for succeeds only when nothing lives on the node and it drains still.
func TestDrainIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		hosted []int  // what lives there, by question; the last answer stays; -1: the node answers no more
		health string // what it says of itself
		late   bool   // the time is over
		disks  int    // that need its disk of a store
		want   string
	}{
		"done":        {hosted: []int{2, 1, 0}, health: `"state":"ready","draining":true`},
		"unreachable": {hosted: []int{1, 0}, health: `"state":"suspended","draining":true`},
		"downed": {hosted: []int{2, 0}, health: `"state":"ended","reason":"marked down by 10.0.0.2:1","draining":true`,
			want: "nothing lives there, but for another reason than the drain: this node is ended: marked down by 10.0.0.2:1"},
		"leaving": {hosted: []int{0}, health: `"state":"leaving","draining":true`,
			want: "nothing lives there, but for another reason than the drain: this node is leaving"},
		"restarted": {hosted: []int{2, 0}, health: `"state":"ready"`, want: "taken back, or it has been started again"},
		"gone":      {hosted: []int{2, -1}, want: "the drain began, and how it ended is not known"},
		"slow": {hosted: []int{2}, health: `"state":"ready","draining":true`, late: true,
			want: "2 shards live there still; the drain goes on"},
		"needed": {hosted: []int{0}, disks: 2, health: `"state":"ready","draining":true`, late: true,
			want: "2 disks, and 0 shards of records, need its disk of v still; the drain goes on"},
		"restarted and slow": {hosted: []int{2}, health: `"state":"ready"`, late: true,
			want: "2 shards live there still, but it does not drain"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			routes := http.NewServeMux()
			routes.HandleFunc("POST /v1/drain", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(w, `{"message":"everything moves away"}`)
			})
			routes.HandleFunc("GET /v1/types", func(w http.ResponseWriter, _ *http.Request) {
				n := c.hosted[min(int(asked.Add(1)), len(c.hosted))-1]
				if n < 0 {
					panic(http.ErrAbortHandler)
				}
				_, _ = fmt.Fprintf(w, `{"types":[{"name":"a","hosted":%d}]}`, n)
			})
			routes.HandleFunc("GET /v1/values", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"stores":[{"store":"v","hand_on":{"leaves":true,"disks":%d}}]}`, c.disks)
			})
			routes.HandleFunc("GET /health/ready", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{%s}`, c.health)
			})
			s := httptest.NewServer(routes)
			defer s.Close()
			var out bytes.Buffer
			d := Drain{Asked: Asked{Admin: s.URL, Timeout: time.Minute}, Wait: true}
			verb := d.Run
			if c.late {
				verb = func(to *Console) error { return d.await(to, time.Now().Add(-time.Second)) }
			}
			err := verb(&Console{Out: &out})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
