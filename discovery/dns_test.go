// Tests of DNS against a server on loopback (BOOT-1).

package discovery_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/discovery/discoverytest"
)

// dnsServer answers for one name; code is what it answers instead of records.
type dnsServer struct {
	addr    string
	code    atomic.Int32
	silent  atomic.Bool
	records []dns.RR
}

func serveDNS(t *testing.T, records ...dns.RR) *dnsServer {
	t.Helper()
	conn, stream := listenBoth(t)
	d := &dnsServer{addr: conn.LocalAddr().String(), records: records}
	for _, s := range []*dns.Server{{PacketConn: conn, Handler: d}, {Listener: stream, Handler: d}} {
		up := make(chan struct{})
		s.NotifyStartedFunc = func() { close(up) }
		go func() { _ = s.ActivateAndServe() }()
		<-up
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return d
}

// listenBoth listens on one port with UDP and TCP. Somebody else may hold the TCP port of a UDP port that was free.
func listenBoth(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, err)
		stream, err := net.Listen("tcp", conn.LocalAddr().String())
		if err == nil {
			return conn, stream
		}
		require.NoError(t, conn.Close())
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

func (d *dnsServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	if d.silent.Load() {
		return
	}
	a := new(dns.Msg)
	a.SetRcode(q, int(d.code.Load()))
	known := false
	for _, r := range d.records {
		if r.Header().Name == q.Question[0].Name {
			known = true
			if r.Header().Rrtype == q.Question[0].Qtype && a.Rcode == dns.RcodeSuccess {
				a.Answer = append(a.Answer, r)
			}
		}
	}
	if !known && a.Rcode == dns.RcodeSuccess {
		a.Rcode = dns.RcodeNameError
	}
	if w.RemoteAddr().Network() == "udp" {
		a.Truncate(512)
	}
	_ = w.WriteMsg(a)
}

func addressRecord(name, host string) dns.RR {
	a := netip.MustParseAddr(host)
	header := dns.RR_Header{Name: name, Class: dns.ClassINET, Ttl: 1, Rrtype: dns.TypeA}
	if a.Is4() {
		return &dns.A{Hdr: header, A: a.AsSlice()}
	}
	header.Rrtype = dns.TypeAAAA
	return &dns.AAAA{Hdr: header, AAAA: a.AsSlice()}
}

func serviceRecord(name, host string, port uint16) dns.RR {
	return &dns.SRV{Hdr: dns.RR_Header{Name: name, Class: dns.ClassINET, Ttl: 1, Rrtype: dns.TypeSRV}, Target: host + ".",
		Port: port}
}

// a DNS server that does not exist
const nowhere = "127.0.0.1:1"

func newDNS(t *testing.T, cfg discovery.DNSConfig) discovery.Discovery {
	t.Helper()
	d, err := discovery.DNS(cfg)
	require.NoError(t, err)
	return d
}

// Addresses keep the contract (BOOT-1).
func TestDNSAddresses(t *testing.T) {
	discoverytest.Run(t, discoverytest.Case{Empty: true,
		New: func(t *testing.T, targets []discovery.Target) discovery.Discovery {
			var records []dns.RR
			for _, target := range slices.Backward(targets) {
				records = append(records, addressRecord("market.test.", target.Host))
			}
			return newDNS(t, discovery.DNSConfig{Name: "market.test.", Server: serveDNS(t, records...).addr})
		},
		Fail: func(t *testing.T) discovery.Discovery {
			return newDNS(t, discovery.DNSConfig{Name: "market.test.", Server: nowhere})
		}})
}

// Service records keep the contract (BOOT-1).
func TestDNSServices(t *testing.T) {
	discoverytest.Run(t, discoverytest.Case{Empty: true, Ports: true, Names: true,
		New: func(t *testing.T, targets []discovery.Target) discovery.Discovery {
			var records []dns.RR
			for _, target := range slices.Backward(targets) {
				records = append(records, serviceRecord("_kith._tcp.market.test.", target.Host, target.Port))
			}
			return newDNS(t, discovery.DNSConfig{Name: "market.test.", Service: "kith", Server: serveDNS(t, records...).addr})
		},
		Fail: func(t *testing.T) discovery.Discovery {
			return newDNS(t, discovery.DNSConfig{Name: "market.test.", Service: "kith", Server: nowhere})
		}})
}

// What a server may do: no such name is nobody, a failure is an error, and one that does not answer costs the time that
// the caller gives (BOOT-1, BOOT-7).
func TestDNSFailures(t *testing.T) {
	s := serveDNS(t, addressRecord("market.test.", "10.0.0.1"), addressRecord("market.test.", "2001:db8::1"),
		serviceRecord("_kith._tcp.market.test.", "n1.market.test", 0))
	d := newDNS(t, discovery.DNSConfig{Name: "market.test.", Server: s.addr, Port: 7})
	list, err := d.Lookup(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1:7", "[2001:db8::1]:7"}, texts(list))

	srv := newDNS(t, discovery.DNSConfig{Name: "market.test.", Service: "kith", Server: s.addr})
	list, err = srv.Lookup(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "a service record without a port names nobody")

	other := newDNS(t, discovery.DNSConfig{Name: "other.test.", Server: s.addr})
	list, err = other.Lookup(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)

	s.code.Store(dns.RcodeServerFailure)
	_, err = d.Lookup(t.Context())
	require.Error(t, err)
	s.code.Store(dns.RcodeRefused)
	_, err = srv.Lookup(t.Context())
	require.Error(t, err)

	s.silent.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = d.Lookup(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// More addresses than MaxTargets are an error (BOOT-7).
func TestDNSTooMany(t *testing.T) {
	var records []dns.RR
	for i := range discovery.MaxTargets + 1 {
		host := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()
		records = append(records, addressRecord("market.test.", host))
	}
	d := newDNS(t, discovery.DNSConfig{Name: "market.test.", Server: serveDNS(t, records...).addr})
	_, err := d.Lookup(t.Context())
	require.ErrorIs(t, err, discovery.ErrTooManyTargets)
}

// All faults of a configuration at once.
func TestDNSConfig(t *testing.T) {
	_, err := discovery.DNS(discovery.DNSConfig{Name: "a b", Service: "x.y", Server: "here"})
	require.ErrorIs(t, err, discovery.ErrBadConfig)
	for _, want := range []string{"name: ", `"x.y"`, `"here" has no port`} {
		require.ErrorContains(t, err, want)
	}
	_, err = discovery.DNS(discovery.DNSConfig{Name: "a", Proto: "udp"})
	require.ErrorContains(t, err, "without a service")
	_, err = discovery.DNS(discovery.DNSConfig{})
	require.ErrorIs(t, err, discovery.ErrBadTarget)
}
