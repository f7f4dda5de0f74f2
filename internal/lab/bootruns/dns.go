// DNS: a server that tells what a run wants it to.

package bootruns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"github.com/miekg/dns"
)

// Trouble is how a Names fails.
type Trouble string

// The troubles; empty: none.
const (
	DropSix Trouble = "drops-aaaa" // queries for addresses of IPv6 are dropped, as some resolvers and firewalls do
	Fails   Trouble = "servfail"   // every answer is SERVFAIL
	Silent  Trouble = "silent"     // no query is answered
)

// Names is a DNS server for some names. It is safe for concurrent use.
type Names struct {
	servers []*dns.Server
	lock    sync.Mutex
	lists   map[string][]string // IP addresses by name, the dot at its end included
	lies    func(all []string) (answer []string, fails bool)
	trouble Trouble
}

// ServeNames answers what comes to these sockets, which it owns from then on, until Close.
func ServeNames(conns ...net.PacketConn) *Names {
	s := &Names{lists: map[string][]string{}}
	var up sync.WaitGroup
	for _, conn := range conns {
		up.Add(1)
		server := &dns.Server{PacketConn: conn, Handler: s, NotifyStartedFunc: up.Done}
		s.servers = append(s.servers, server)
		go func() { _ = server.ActivateAndServe() }()
	}
	up.Wait()
	return s
}

// serve answers on a port of loopback that it returns.
func serve() (s *Names, addr string, err error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("DNS server: %w", err)
	}
	return ServeNames(conn), conn.LocalAddr().String(), nil
}

// Close ends the server and closes its sockets.
func (s *Names) Close() error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Shutdown())
	}
	return errors.Join(errs...)
}

// Set makes these IP addresses the truth of a name, which ends with a dot.
func (s *Names) Set(name string, list ...string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lists[name] = slices.Clone(list)
}

// Trouble makes the server fail from now on; the empty one ends that.
func (s *Names) Trouble(t Trouble) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.trouble = t
}

// set makes these addresses the truth of the name that nodes of this package look up.
func (s *Names) set(list ...string) { s.Set(domain, list...) }

// lie has answers come from how instead; nil: the truth.
func (s *Names) lie(how func(all []string) ([]string, bool)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lies = how
}

// partial tells two or three neighbours of all, another part at each look-up.
func (s *Names) partial(all []string) ([]string, bool) {
	at, n := rand.IntN(len(all)), 2+rand.IntN(2)
	var list []string
	for i := range n {
		list = append(list, all[(at+i)%len(all)])
	}
	return list, false
}

// flapping tells all, nobody, or that it has failed.
func (s *Names) flapping(all []string) ([]string, bool) {
	switch rand.IntN(3) {
	case 0:
		return all, false
	case 1:
		return nil, false
	}
	return nil, true
}

// ServeDNS answers.
func (s *Names) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	if len(q.Question) != 1 {
		return
	}
	asked := q.Question[0]
	s.lock.Lock()
	list, known := s.lists[asked.Name]
	fails, trouble := false, s.trouble
	if s.lies != nil && known {
		list, fails = s.lies(slices.Clone(list))
	}
	s.lock.Unlock()
	if trouble == Silent || trouble == DropSix && asked.Qtype == dns.TypeAAAA {
		return
	}
	a := new(dns.Msg)
	a.SetReply(q)
	switch {
	case fails || trouble == Fails:
		a.Rcode = dns.RcodeServerFailure
	case !known:
		a.Rcode = dns.RcodeNameError
	case asked.Qtype == dns.TypeA:
		for _, host := range list {
			a.Answer = append(a.Answer, &dns.A{Hdr: dns.RR_Header{Name: asked.Name, Rrtype: dns.TypeA, Class: dns.ClassINET,
				Ttl: 1}, A: net.ParseIP(host)})
		}
	}
	_ = w.WriteMsg(a)
}
