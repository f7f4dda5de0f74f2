// Addr and ID: comparable, totally ordered names of a listening address and of one incarnation of a node at it.

package peer

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kith-io/kith/wire"
)

const (
	// MaxHostSize is the longest host name, in bytes (the bound of DNS).
	MaxHostSize = 253
	// MaxZoneSize is the longest zone of an IPv6 address, in bytes.
	MaxZoneSize = 64
)

// ErrBadAddr is returned for text that is not host:port with a valid host and a port from 1 to 65535.
var ErrBadAddr = errors.New("peer: bad address")

// Addr is a host (an IP or a name) and a port. It is comparable; the zero value is no address. IPs order numerically
// and before names, names by bytes; then by port. One place has one Addr: an IPv4-mapped IPv6 address is the IPv4
// address, names are lower case and without the dot that ends a full DNS name.
type Addr struct {
	ip   netip.Addr
	host string
	port uint16
}

// MakeAddr returns the address of host and port, or ErrBadAddr.
func MakeAddr(host string, port uint16) (Addr, error) {
	if port == 0 {
		return Addr{}, fmt.Errorf("%w: port 0 in %q", ErrBadAddr, host)
	}
	host = strings.TrimSuffix(host, ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		if zone := ip.Zone(); zone != "" && (len(zone) > MaxZoneSize || checkHost(zone) != nil) {
			return Addr{}, fmt.Errorf("%w: zone %q", ErrBadAddr, zone)
		}
		return Addr{ip: ip, port: port}, nil
	}
	if err := checkHost(host); err != nil {
		return Addr{}, err
	}
	return Addr{host: strings.ToLower(host), port: port}, nil
}

// checkHost accepts letters, digits, hyphens and underscores in labels that are not empty, with dots between them.
func checkHost(host string) error {
	if host == "" || len(host) > MaxHostSize {
		return fmt.Errorf("%w: host of %d bytes", ErrBadAddr, len(host))
	}
	if host[0] == '.' || host[len(host)-1] == '.' || strings.Contains(host, "..") {
		return fmt.Errorf("%w: empty label in host %q", ErrBadAddr, host)
	}
	for i := 0; i < len(host); i++ {
		c := host[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
		if !ok {
			return fmt.Errorf("%w: character %q in host %q", ErrBadAddr, c, host)
		}
	}
	return nil
}

// ParseAddr reads host:port or [v6]:port.
func ParseAddr(s string) (Addr, error) {
	a, err := parseAddr(s)
	if err == nil {
		return a, nil
	}
	list := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", ;\t\n", r) })
	switch {
	case strings.Contains(s, "://"):
		err = fmt.Errorf("%w: %q has a scheme: host:port is wanted", ErrBadAddr, s)
	case len(list) > 1 && !slices.ContainsFunc(list, func(one string) bool { return !strings.Contains(one, ":") }):
		err = fmt.Errorf("%w: %q is a list in one text: each address is a text of its own (YAML: [\"a:1\", \"b:2\"]; "+
			"a flag or a variable: a:1,b:2)", ErrBadAddr, s)
	}
	return Addr{}, err
}

func parseAddr(s string) (Addr, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return Addr{}, fmt.Errorf("%w: no port in %q", ErrBadAddr, s)
	}
	port, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil {
		return Addr{}, fmt.Errorf("%w: port %q in %q", ErrBadAddr, s[i+1:], s)
	}
	host := s[:i]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	} else if strings.Contains(host, ":") {
		return Addr{}, fmt.Errorf("%w: IPv6 host of %q needs brackets", ErrBadAddr, s)
	}
	return MakeAddr(host, uint16(port))
}

// MustAddr is ParseAddr for constants and tests; it panics on a bad address.
func MustAddr(s string) Addr {
	a, err := ParseAddr(s)
	if err != nil {
		panic(err)
	}
	return a
}

// IsZero reports whether a is no address.
func (a Addr) IsZero() bool { return a.port == 0 }

// Host returns the IP as text or the host name.
func (a Addr) Host() string {
	if a.ip.IsValid() {
		return a.ip.String()
	}
	return a.host
}

// Port returns the port.
func (a Addr) Port() uint16 { return a.port }

// IsLoopback reports whether a is a loopback IP or the name localhost.
func (a Addr) IsLoopback() bool { return a.ip.IsLoopback() || a.host == "localhost" }

// Compare orders addresses: -1, 0 or +1.
func (a Addr) Compare(b Addr) int {
	switch {
	case a.ip.IsValid() && !b.ip.IsValid():
		return -1
	case !a.ip.IsValid() && b.ip.IsValid():
		return 1
	}
	if c := a.ip.Compare(b.ip); c != 0 {
		return c
	}
	if c := strings.Compare(a.host, b.host); c != 0 {
		return c
	}
	return cmp.Compare(a.port, b.port)
}

// String prints host:port, with brackets around IPv6.
func (a Addr) String() string {
	if a.IsZero() {
		return "-"
	}
	if a.ip.Is6() {
		return "[" + a.ip.String() + "]:" + strconv.Itoa(int(a.port))
	}
	return a.Host() + ":" + strconv.Itoa(int(a.port))
}

// MarshalText is String, for logs and statistics.
func (a Addr) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// ID names one incarnation of a node: its address and a 64-bit number drawn at random when the process started. It is
// comparable; the zero value is no one. An Inc of zero in mail means any incarnation at the address.
type ID struct {
	Addr Addr
	Inc  uint64
}

// IsZero reports whether id is no one.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders by address, then incarnation.
func (id ID) Compare(o ID) int {
	if c := id.Addr.Compare(o.Addr); c != 0 {
		return c
	}
	return cmp.Compare(id.Inc, o.Inc)
}

// Less reports whether id orders before o.
func (id ID) Less(o ID) bool { return id.Compare(o) < 0 }

// String prints address#incarnation, the incarnation in hexadecimal.
func (id ID) String() string { return id.Addr.String() + "#" + strconv.FormatUint(id.Inc, 16) }

// MarshalText is String, for logs and statistics.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// AppendAddr appends the wire form of a: one byte (0 none, 4, 6, or 1 for a name), the host, the port.
func AppendAddr(b []byte, a Addr) []byte {
	switch {
	case a.IsZero():
		return append(b, 0)
	case a.ip.Is4():
		v := a.ip.As4()
		b = append(append(b, 4), v[:]...)
	case a.ip.Is6():
		v := a.ip.As16()
		b = append(append(b, 6), v[:]...)
		b = wire.AppendString(b, a.ip.Zone())
	default:
		b = wire.AppendString(append(b, 1), a.host)
	}
	return wire.AppendU16(b, a.port)
}

// ReadAddr reads what AppendAddr wrote, and only that: every address has one encoding. Errors stay in r, and the result
// is then no address.
func ReadAddr(r *wire.Reader) Addr {
	var a Addr
	switch r.U8() {
	case 0:
		return a
	case 4:
		if v := r.Fixed(4); v != nil {
			a.ip = netip.AddrFrom4([4]byte(v))
		}
	case 6:
		if v := r.Fixed(16); v != nil {
			a.ip = netip.AddrFrom16([16]byte(v))
		}
		if zone := r.String(MaxZoneSize); zone != "" {
			if checkHost(zone) != nil {
				r.Fail(wire.ErrBadValue)
			}
			a.ip = a.ip.WithZone(zone)
		}
		if a.ip.Is4In6() {
			r.Fail(wire.ErrBadValue) // its one encoding is the IPv4 address
		}
	case 1:
		a.host = r.String(MaxHostSize)
		if r.Err() == nil && (checkHost(a.host) != nil || a.host != strings.ToLower(a.host) || isIP(a.host)) {
			r.Fail(wire.ErrBadValue)
		}
	default:
		r.Fail(wire.ErrBadValue)
	}
	a.port = r.U16()
	if r.Err() == nil && a.port == 0 {
		r.Fail(wire.ErrBadValue)
	}
	if r.Err() != nil {
		return Addr{}
	}
	return a
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// AppendID appends the wire form of id: address, incarnation.
func AppendID(b []byte, id ID) []byte { return wire.AppendU64(AppendAddr(b, id.Addr), id.Inc) }

// ReadID reads what AppendID wrote. Errors stay in r: ErrBadValue for an incarnation of no address.
func ReadID(r *wire.Reader) ID {
	id := ID{ReadAddr(r), r.U64()}
	if id.Addr.IsZero() && id.Inc != 0 {
		r.Fail(wire.ErrBadValue)
	}
	if r.Err() != nil {
		return ID{}
	}
	return id
}

// MinIDSize is the fewest bytes of an encoded ID, for Reader.Count.
const MinIDSize = 9
