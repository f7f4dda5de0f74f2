// Tests of nodes that find each other over sockets, and of the contact point (BOOT-1 to BOOT-8).

package bootstrap

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/port"
)

// known is a discovery that a test fills.
type known struct {
	lock sync.Mutex
	list []discovery.Target
	err  error
}

func (k *known) Lookup(context.Context) ([]discovery.Target, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	return append([]discovery.Target(nil), k.list...), k.err
}

func (k *known) add(t *testing.T, point string) {
	t.Helper()
	target, err := discovery.ParseTarget(point)
	require.NoError(t, err)
	k.lock.Lock()
	defer k.lock.Unlock()
	k.list = append(k.list, target)
}

const margin = 200 * time.Millisecond

// begun starts a node.
func begun(t *testing.T, k discovery.Discovery, node kith.Config, cfg Config) *Bootstrap {
	t.Helper()
	cfg.Discovery, cfg.Margin = k, margin
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	b, err := Start(t.Context(), node, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = b.Close(context.Background())
		_ = b.Node().Close()
	})
	return b
}

// up waits until all are members of one cluster.
func up(t *testing.T, list ...*Bootstrap) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ids := map[uint64]bool{}
	for _, b := range list {
		require.NoError(t, b.Node().Ready(ctx), "%+v", b.Explain())
		<-b.Done()
		require.NoError(t, b.Err())
		ids[b.Node().View().ClusterID] = true
	}
	require.Len(t, ids, 1, "one cluster")
	return list[0].Node().View().ClusterID
}

func get(t *testing.T, url string, v any) int {
	t.Helper()
	a, err := http.Get(url)
	require.NoError(t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	if v != nil {
		require.NoError(t, json.Unmarshal(body, v), "%s", body)
	}
	return a.StatusCode
}

// Three nodes that know nobody form one cluster, under TLS too; a fourth joins it; a fifth of another name and a sixth
// that knows of that one only do not (BOOT-1, BOOT-2, BOOT-3, BOOT-4).
func TestNodesFindEachOther(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, pki.ThrowAway(dir, []string{kith.ClusterURI("kith")}, []string{"127.0.0.1"}, "n"))
	cert, key := pki.Paths(dir, "n")
	for name, protect := range map[string]kith.TLS{"plain": {}, "tls": {CertFile: cert, KeyFile: key,
		CAFile: filepath.Join(dir, pki.CAName+pki.CertSuffix), VerifyHost: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &known{}
			var all []*Bootstrap
			for range 3 {
				b := begun(t, k, kith.Config{TLS: protect}, Config{Expected: 3})
				k.add(t, b.ContactPoint())
				all = append(all, b)
			}
			id := up(t, all...)
			late := begun(t, k, kith.Config{TLS: protect}, Config{Expected: 3, NeverForm: true})
			require.Equal(t, id, up(t, append(all, late)...))
			require.Equal(t, 4, len(late.Node().View().Members))
			if protect.On() {
				bare := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
				_, err := bare.Get("https://" + late.ContactPoint() + contactPath)
				require.ErrorContains(t, err, "certificate required", "who shows none learns nothing")
				a, err := http.Get("http://" + late.ContactPoint() + contactPath)
				require.NoError(t, err)
				require.NoError(t, a.Body.Close())
				require.Equal(t, http.StatusBadRequest, a.StatusCode)
				return
			}
			var c contactJSON
			require.Equal(t, http.StatusOK, get(t, "http://"+late.ContactPoint()+contactPath, &c))
			r, err := c.reply()
			require.NoError(t, err)
			require.Equal(t, id, r.ClusterID)
			require.Len(t, r.Seeds, 4)
			require.Equal(t, late.Node().ID(), r.Node)
		})
	}
}

// A node of another name is never joined, and neither is it waited for; a node that finds no other waits and says why
// (BOOT-3, BOOT-5).
func TestWaitsAndSaysWhy(t *testing.T) {
	other := &known{}
	stranger := begun(t, other, kith.Config{Name: "another"}, Config{Expected: 1})
	other.add(t, stranger.ContactPoint())
	up(t, stranger)

	k := &known{}
	k.add(t, stranger.ContactPoint())
	var log logstest.Text
	b := begun(t, k, kith.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, Config{Expected: 1, NeverForm: true})
	wait := func(hold formation.Hold) {
		t.Helper()
		require.Eventually(t, func() bool { return b.Explain().Hold == hold }, 2*time.Minute, 5*time.Millisecond, "%+v",
			b.Explain())
	}
	wait(formation.HoldTooFew)
	k.add(t, b.ContactPoint())
	wait(formation.HoldNeverForm)
	var e explanationJSON
	require.Equal(t, http.StatusOK, get(t, "http://"+b.ContactPoint()+explainPath, &e))
	require.Equal(t, formation.HoldNeverForm, e.Hold)
	require.Len(t, e.Points, 2)
	require.Equal(t, "another", map[bool]*contactJSON{true: e.Points[0].Answer, false: e.Points[1].Answer}[e.Points[0].
		Point == stranger.ContactPoint()].Cluster)
	require.Equal(t, kith.WaitSeeds, b.Node().Health().Waiting.For)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "hold=too-few") && strings.Contains(log.String(), "hold=never-form")
	}, time.Minute, 5*time.Millisecond)
	require.Zero(t, b.Node().View().ClusterID)

	require.NoError(t, b.Close(t.Context()))
	<-b.Done()
	require.ErrorIs(t, b.Err(), ErrClosed)
}

// A node that finds no cluster in time is ended, with what it waited for (BOOT-4, JOIN-2).
func TestTimeLimit(t *testing.T) {
	k := &known{err: errors.New("no \x1b[2J answer")}
	b := begun(t, k, kith.Config{}, Config{Expected: 2, Timeout: 100 * time.Millisecond})
	<-b.Done()
	limit := (*TimeoutError)(nil)
	require.ErrorAs(t, b.Err(), &limit)
	require.Equal(t, formation.HoldUnknown, limit.Explanation.Hold)
	<-b.Node().Done()
	require.Equal(t, kith.ReasonJoinUnsuccessful, b.Node().ShutdownReason())
	require.Equal(t, http.StatusServiceUnavailable, get(t, "http://"+b.ContactPoint()+contactPath, nil))
}

// panicking is a discovery that panics, or ends its goroutine.
type panicking struct {
	known
	asked atomic.Int64
}

func (p *panicking) Lookup(context.Context) ([]discovery.Target, error) {
	if p.asked.Add(1)%2 == 0 {
		runtime.Goexit()
	}
	panic("ouch")
}

// A look-up that panics, or ends its goroutine, has failed, and is tried again; the node goes on (BOOT-6).
func TestLookupPanics(t *testing.T) {
	p := &panicking{}
	b := begun(t, p, kith.Config{}, Config{Expected: 1})
	require.Eventually(t, func() bool { return p.asked.Load() > 4 }, time.Minute, 5*time.Millisecond)
	require.NoError(t, b.Err())
	require.EqualValues(t, formation.HoldUnknown, b.Explain().Hold)
}

// A decider that panics waits, and the node goes on (BOOT-6).
func TestDeciderPanics(t *testing.T) {
	k := &known{}
	b := begun(t, k, kith.Config{}, Config{Expected: 1, Decider: broken{}})
	k.add(t, b.ContactPoint())
	require.Eventually(t, func() bool { return strings.Contains(b.Explain().Detail, "panicked: oh") }, time.Minute,
		5*time.Millisecond)
}

type broken struct{}

func (broken) Decide(formation.Info) formation.Decision { panic("oh") }

// Bad requests to the contact point are refused, bounded, and change nothing; slow ones are cut off (BOOT-2, SEC-1).
func TestContactPointIsBounded(t *testing.T) {
	k := &known{}
	b := begun(t, k, kith.Config{}, Config{Expected: 2, ProbeTimeout: 50 * time.Millisecond})
	url := "http://" + b.ContactPoint()
	post := func(body string) int {
		a, err := http.Post(url+promisePath, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer a.Body.Close()
		return a.StatusCode
	}
	for body, want := range map[string]int{
		"": 400, "{": 400, "[]": 400, `{"format":0}`: 400, strings.Repeat(" ", maxBody+1): 413,
		`{"format":1,"cluster":"kith","node":"a b","incarnation":"1","contact":"a:1","attempt":1}`:        400,
		`{"format":1,"cluster":"kith","node":"a:1","incarnation":"0","contact":"a:1","attempt":1}`:        400,
		`{"format":1,"cluster":"kith","node":"a:1","incarnation":"1","contact":"a","attempt":1}`:          400,
		`{"format":1,"cluster":"kith","node":"a:1","incarnation":"1","contact":"a:1","attempt":0}`:        400,
		`{"format":9,"cluster":"other","node":"a:1","incarnation":"1","contact":"a:1","attempt":1,"x":1}`: 200,
	} {
		require.Equal(t, want, post(body), "%.90s", body)
	}
	require.True(t, b.Explain().Promised.IsZero())
	require.Equal(t, 200, post(`{"format":1,"cluster":"kith","node":"a:1","incarnation":"1","contact":"a:1","attempt":1,`+
		`"wants":true}`))
	require.Equal(t, "a:1#1", b.Explain().Promised.String())
	require.Equal(t, http.StatusMethodNotAllowed, get(t, url+promisePath, nil))
	require.Equal(t, http.StatusNotFound, get(t, url+"/", nil))

	slow, err := net.Dial("tcp", b.ContactPoint())
	require.NoError(t, err)
	defer slow.Close()
	_, err = slow.Write([]byte("GET " + contactPath + " HTTP/1.1\r\n"))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, slow)
	require.NoError(t, err, "cut off")
}

// What contact points answer is read strictly, except for fields of later versions (BOOT-8, SEC-5).
func TestReadContact(t *testing.T) {
	const good = `{"format":2,"cluster":"kith","node":"10.0.0.1:7355","incarnation":"000000000000000a","wire":"90-99",` +
		`"cluster_id":"0000000000000005","seeds":["10.0.0.2:7355"],"forms":false,"ended_attempts":3,"later":{}}`
	r, err := readContact([]byte(good))
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1:7355#a", r.Node.String())
	require.Equal(t, uint64(5), r.ClusterID)
	require.Equal(t, "90-99", r.Wire.String(), "no version that this build speaks")
	again, err := json.Marshal(toJSON(r))
	require.NoError(t, err)
	back, err := readContact(again)
	require.NoError(t, err)
	require.Equal(t, r, back)
	for old, bad := range map[string]string{`"format":2`: `"format":0`, `"kith"`: `""`, `"10.0.0.1:7355"`: `"10.0.0.1"`,
		`"000000000000000a"`: `"0"`, `"90-99"`: `"9-1"`, `"0000000000000005"`: `"x"`, `["10.0.0.2:7355"]`: `["a"]`,
		`"cluster_id":"0000000000000005",`: ``, `{}`: `{`, `"ended_attempts":3`: `"ended_attempts":-3`,
		`"seeds":["10.0.0.2:7355"]`: `"seeds":["a:1","a:2","a:3","a:4","a:5","a:6"]`} {
		require.Contains(t, good, old)
		_, err := readContact([]byte(strings.Replace(good, old, bad, 1)))
		require.ErrorIs(t, err, errFormat, bad)
	}
}

// FuzzContact reads any bytes as answers and requests: what is taken is within its bounds.
func FuzzContact(f *testing.F) {
	f.Add([]byte(`{"format":1,"cluster":"kith","node":"10.0.0.1:7355","incarnation":"a","wire":"1-5","seeds":[]}`))
	f.Add([]byte(`{"format":1,"cluster":"kith","node":"a:1","incarnation":"1","contact":"a:1","attempt":1}`))
	f.Add([]byte(`{"contact":{"format":1},"granted":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := readContact(body); err == nil {
			require.LessOrEqual(t, len(r.Seeds), formation.MaxSeeds)
			require.NotZero(t, r.Node.Inc)
		}
		if a, err := readAsk(body); err == nil {
			require.NotZero(t, a.Attempt)
		}
		_, _ = readAnswer(body)
	})
}

// All faults of a configuration at once; a port that is taken is an error, and starts nothing.
func TestConfig(t *testing.T) {
	err := Config{Listen: "10.0.0.1:7627", Expected: 2, Required: 3, ProbeTimeout: -1, Advertise: "here"}.Validate(
		kith.Config{Seeds: []string{"a:1"}, FormNew: true})
	require.ErrorIs(t, err, ErrBadConfig)
	for _, want := range []string{"Discovery is nil", "Seeds beside", "FormNew", "not loopback", "Required is 3",
		"ProbeTimeout", "Advertise"} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, Config{Discovery: &known{}, Listen: "0.0.0.0:0"}.Validate(kith.Config{Insecure: true,
		NeverForm: true}))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = Start(t.Context(), kith.Config{}, Config{Discovery: &known{}, Listen: taken.Addr().String()})
	require.ErrorContains(t, err, "contact point")
}

// Answers that are none of a contact point, and points at which nobody is, are said with their reasons.
func TestBadContactPoints(t *testing.T) {
	k, nobody := &known{}, port.Keep(t)
	k.add(t, nobody)
	k.add(t, website(t, "application/json", strings.Repeat("x", maxBody+2)))
	b := begun(t, k, kith.Config{}, Config{Expected: 1})
	k.add(t, b.ContactPoint())
	require.Eventually(t, func() bool {
		var failed []string
		for _, p := range b.Explain().Points {
			failed = append(failed, p.Failed)
		}
		all := strings.Join(failed, "; ")
		return strings.Contains(all, "refused") && strings.Contains(all, "more than 16384 bytes") && len(failed) == 3 &&
			b.Explain().Hold == formation.HoldSilent
	}, 2*time.Minute, 5*time.Millisecond)
}
