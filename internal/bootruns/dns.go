// DNS: a server on loopback that tells what a run wants it to.

package bootruns

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"github.com/miekg/dns"
)

// server is a DNS server for one name.
type server struct {
	addr string
	dns  *dns.Server
	lock sync.Mutex
	list []string
	lies func(all []string) (answer []string, fails bool)
	six  bool // queries for addresses of IPv6 are dropped
}

// serve starts a server.
func serve() (*server, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("DNS server: %w", err)
	}
	s, up := &server{addr: conn.LocalAddr().String()}, make(chan struct{})
	s.dns = &dns.Server{PacketConn: conn, Handler: s, NotifyStartedFunc: func() { close(up) }}
	go func() { _ = s.dns.ActivateAndServe() }()
	<-up
	return s, nil
}

func (s *server) close() { _ = s.dns.Shutdown() }

// set makes these addresses the truth.
func (s *server) set(list ...string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.list = slices.Clone(list)
}

// lie has answers come from how instead; nil: the truth.
func (s *server) lie(how func(all []string) ([]string, bool)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lies = how
}

// dropSix has queries for addresses of IPv6 dropped, as some resolvers and firewalls do.
func (s *server) dropSix() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.six = true
}

// partial tells two or three neighbours of all, another part at each look-up.
func (s *server) partial(all []string) ([]string, bool) {
	at, n := rand.IntN(len(all)), 2+rand.IntN(2)
	var list []string
	for i := range n {
		list = append(list, all[(at+i)%len(all)])
	}
	return list, false
}

// flapping tells all, nobody, or that it has failed.
func (s *server) flapping(all []string) ([]string, bool) {
	switch rand.IntN(3) {
	case 0:
		return all, false
	case 1:
		return nil, false
	}
	return nil, true
}

// ServeDNS answers.
func (s *server) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.lock.Lock()
	list, fails := s.list, false
	if s.lies != nil {
		list, fails = s.lies(slices.Clone(s.list))
	}
	drops := s.six && q.Question[0].Qtype == dns.TypeAAAA
	s.lock.Unlock()
	if drops {
		return
	}
	a := new(dns.Msg)
	a.SetReply(q)
	if fails {
		a.Rcode = dns.RcodeServerFailure
	} else if name := q.Question[0]; name.Name != domain {
		a.Rcode = dns.RcodeNameError
	} else if name.Qtype == dns.TypeA {
		for _, host := range list {
			a.Answer = append(a.Answer, &dns.A{Hdr: dns.RR_Header{Name: domain, Rrtype: dns.TypeA, Class: dns.ClassINET,
				Ttl: 1}, A: net.ParseIP(host)})
		}
	}
	_ = w.WriteMsg(a)
}
