// Tests of names: nobody takes another node's place, by a certificate of its own or without any; a node's identity
// survives renewal; hosts are checked at both ends.

package transport

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// called is member with a name of its own, and hosts.
func called(t testing.TB, ca *pki.CA, name string, hosts ...string) func(*Config) {
	cert := leaf(t, ca, func(r *pki.Request) { r.Name, r.Hosts = name, hosts })
	return withTLS(trust.Credentials{Certificate: cert, CAs: pool(t, ca)})
}

// thief runs a node that says it is another one, under generations that are far ahead.
func thief(t *testing.T, of *Transport, to peer.ID, change func(*Config)) *Transport {
	th := start(t, newRider(), func(c *Config) {
		if change != nil {
			change(c)
		}
		c.Advertise, c.Incarnation = of.Addr().String(), of.Self().Inc
	})
	require.Equal(t, of.Self(), th.Self())
	r, err := th.remote(to)
	require.NoError(t, err)
	for _, u := range []*uplink{&r.control().uplink, &th.Link(to).uplink} {
		u.mu.Lock()
		u.generation = 1 << 30
		u.mu.Unlock()
	}
	return th
}

// A node that says it is another one, under a later generation, is refused on every lane for as long as that one is
// connected, whether by the certificate of another member or without any; the real one does not notice, and is back at
// once when its connections break (SEC-2).
func TestNameIsNotTaken(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls %v", secure), func(t *testing.T) {
			ca := authority(t)
			as := func(name string) func(*Config) {
				if !secure {
					return nil
				}
				return called(t, ca, name)
			}
			a, b := newRider(), newRider()
			ta, tb := start(t, a, as("n1")), start(t, b, as("n2"))
			say := func() {
				require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("real")}))
				require.Equal(t, "real", wantMail(t, b, wire.KindStatus).body)
				require.NoError(t, send(t, ta.Link(tb.Self()), 0, 0, 100, nil))
			}
			say()
			want(t, a.ups)
			want(t, a.ups)
			th := thief(t, ta, tb.Self(), as("n3"))
			require.NoError(t, th.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("false")}))
			require.NoError(t, send(t, th.Link(tb.Self()), 0, 0, 100, nil))
			for _, lane := range []wire.Lane{wire.LaneControl, wire.LaneData} {
				_, _, err := th.open(t.Context(), opening{to: tb.Self(), lane: lane, generation: 1 << 30, speak: wire.Spoken()})
				var refused *hello.RefusedError
				require.ErrorAs(t, err, &refused, lane)
				require.Equal(t, hello.RefusedTaken, refused.Reason)
				require.False(t, refused.Reason.ForGood())
			}
			if secure { // a connection that says no token, for it is dialled by the address alone: the name refuses it
				_, _, err := th.open(t.Context(), opening{to: tb.Self(), lane: wire.LaneControl, number: 1, generation: 1 << 30,
					speak: wire.Spoken()})
				var refused *hello.RefusedError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, hello.RefusedTaken, refused.Reason)
			}
			until(t, func() bool { return tb.Stats().Refused["taken"] >= 4 })
			say()
			require.Empty(t, a.downs, "nobody was displaced")
			breakAll(t, tb, ta.Self())
			want(t, a.downs)
			want(t, a.downs)
			say()
			require.Zero(t, th.Stats().Control.Out+th.Stats().Data.Out)
		})
	}
}

// breakAll closes the two connections that were accepted from a peer.
func breakAll(t *testing.T, tr *Transport, id peer.ID) {
	r, err := tr.remote(id)
	require.NoError(t, err)
	until(t, func() bool { return len(tr.acceptedFrom(r)) == 2 })
	for _, c := range tr.acceptedFrom(r) {
		c.loop.Post(c)
	}
}

// A name that another node took before its own had come is given back: the node that answers at its address counts, and
// the others' connections end (SEC-2).
func TestNameIsGivenBack(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	ta, tb := start(t, a, called(t, ca, "n1")), start(t, b, called(t, ca, "n2"))
	th := thief(t, ta, tb.Self(), called(t, ca, "n3"))
	require.NoError(t, th.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("false")}))
	wantMail(t, b, wire.KindStatus)
	until(t, func() bool { // mail that meets a refusal is lost
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte("real")}))
		select {
		case m := <-b.mails:
			return m.body == "real"
		default:
			return false
		}
	})
	until(t, func() bool { return th.Stats().Control.Out == 0 })
	require.NotZero(t, tb.Stats().Refused["taken"])
	require.NotZero(t, tb.Stats().TLSRefused["other-name"])
	_, _, err := th.open(t.Context(), opening{to: tb.Self(), lane: wire.LaneControl, generation: 1 << 30,
		speak: wire.Spoken()})
	var refused *hello.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, hello.RefusedTaken, refused.Reason)
}

// A node that answers at a peer's address under another certificate than before is not taken for it (SEC-2).
func TestAddressOfAnotherNode(t *testing.T) {
	ca := authority(t)
	ta := start(t, newRider(), called(t, ca, "n1"))
	tb := start(t, newRider(), called(t, ca, "n2"))
	id := tb.Self()
	require.NoError(t, ta.Send(peer.Mail{To: id, Kind: wire.KindStatus}))
	until(t, func() bool { return ta.Stats().Control.Out == 1 })
	tb.Close()
	var other *Transport
	until(t, func() bool { // the port of a listener that was closed
		cfg := Config{Listen: id.Addr.String(), Incarnation: id.Inc, Name: "test", DataLoops: 1}
		called(t, ca, "n3")(&cfg)
		var err error
		other, err = New(cfg, newRider())
		return err == nil
	})
	t.Cleanup(other.Close)
	other.Start()
	until(t, func() bool {
		_ = ta.Send(peer.Mail{To: id, Kind: wire.KindStatus})
		return ta.Stats().TLSFailed["other-name"] > 0
	})
	require.Zero(t, ta.Stats().Control.Out)
}

// A node keeps the name of its certificate: one that names another node is not taken while it runs.
func TestReloadKeepsTheName(t *testing.T) {
	ca := authority(t)
	s := newSite(t, ca)
	tr := start(t, newRider(), func(c *Config) {
		s.tls(c)
		c.filesEvery = time.Hour
	})
	p, err := ca.Issue(pki.Request{Name: "other", URIs: []string{trust.ClusterURI("test")},
		Until: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	require.NoError(t, p.Write(s.dir, "node", true))
	require.ErrorContains(t, tr.ReloadTLS(), `the certificate names node "other", this one is "node"`)
	require.EqualValues(t, 1, tr.Stats().TLSReloadsBad)
	s.prove(ca, time.Now().Add(time.Minute))
	require.NoError(t, tr.ReloadTLS())
}

// With VerifyHost an acceptor demands that a dialler's certificate names the host that the dialler says it is at, as a
// dialler does of the node that it dials (SEC-2).
func TestHostIsCheckedAtBothEnds(t *testing.T) {
	ca := authority(t)
	strict := func(c *Config) {
		called(t, ca, "n2", "127.0.0.1")(c)
		c.TLS.VerifyHost = true
	}
	b := newRider()
	tb := start(t, b, strict)
	good := start(t, newRider(), called(t, ca, "n1", "127.0.0.1"))
	require.NoError(t, good.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	wantMail(t, b, wire.KindStatus)
	for _, hosts := range [][]string{nil, {"127.0.0.2"}, {"elsewhere"}} {
		a := newRider()
		bad := start(t, a, called(t, ca, "n3", hosts...))
		require.NoError(t, bad.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
		e := want(t, a.refused)
		require.Equal(t, hello.RefusedHost, e.Reason)
		require.Contains(t, e.Error(), "127.0.0.1")
	}
	require.EqualValues(t, 3, tb.Stats().Refused["host"])
}

// A dialler that does not know the newer reasons gets the nearest that it knows.
func TestOldDiallersAreToldWhatTheyKnow(t *testing.T) {
	old := wire.Versions{Newest: 2, Oldest: 1}
	tb := start(t, newRider(), nil)
	ta := start(t, newRider(), nil)
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	until(t, func() bool { return tb.Stats().Control.In == 1 })
	nc, err := net.Dial("tcp", tb.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	h := helloFrom(tb, ta.Self(), wire.LaneControl, 1<<31)
	h.Versions = old
	_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
	require.NoError(t, err)
	kind, body, err := readFrame(nc, hello.MaxAnswer)
	require.NoError(t, err)
	require.Equal(t, wire.KindHelloRefuse, kind)
	e, err := hello.ParseRefusal(body)
	require.NoError(t, err)
	require.Equal(t, hello.RefusedBusy, e.Reason)
	require.EqualValues(t, 1, tb.Stats().Refused["taken"])
}
