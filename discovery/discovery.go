// Package discovery finds the contact points of a cluster, before any of its nodes knows another: a list, a file, DNS,
// the Kubernetes API, or several of these one after the other. Package bootstrap looks up again and again and asks what
// it hears of (docs/bootstrap.md). An implementation of your own has to pass the suite of package discoverytest.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what a look-up may return.
const (
	// MaxTargets is the most targets of one answer.
	MaxTargets = 256
	// MaxHost is the longest host of a target in bytes, as in DNS.
	MaxHost = 253
)

// Errors of look-ups; match with errors.Is.
var (
	// ErrTooManyTargets is returned by a look-up that found more than MaxTargets. A part of them would be another part on
	// each node, and nodes that see different parts must not decide anything.
	ErrTooManyTargets = errors.New("discovery: too many targets")
	// ErrBadTarget is wrapped by the error of a target that is no host, or has no valid port.
	ErrBadTarget = errors.New("discovery: bad target")
	// ErrBadConfig is wrapped by the errors of the functions that make a Discovery.
	ErrBadConfig = errors.New("discovery: bad configuration")
)

// Target is where a contact point may be. It does not say whether a node listens there, or which.
type Target struct {
	// Host is an IP address without brackets, or a name in lower case.
	Host string
	// Port is the port of the contact point; zero when the method does not know it: then the caller's own port is meant.
	Port uint16
}

// String prints host:port, with brackets around an IPv6 address, and the host alone where the port is zero.
func (t Target) String() string {
	if t.Port == 0 {
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// Compare orders targets by host, then by port.
func (t Target) Compare(o Target) int {
	if c := strings.Compare(t.Host, o.Host); c != 0 {
		return c
	}
	return int(t.Port) - int(o.Port)
}

// Discovery finds contact points.
type Discovery interface {
	// Lookup returns all contact points that are known now, each once, in the order of Target.Compare, at most MaxTargets
	// of them. An empty list without an error says that there is none; an error says that nothing is known. The slice is
	// the caller's. Lookup may be called by several goroutines, and returns soon after ctx has ended.
	Lookup(ctx context.Context) ([]Target, error)
}

// ParseTarget reads host, host:port, or an IPv6 address with or without brackets. Errors wrap ErrBadTarget.
func ParseTarget(s string) (Target, error) {
	host, port := s, ""
	if _, err := netip.ParseAddr(s); err != nil && strings.ContainsAny(s, ":[]") {
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil && strings.HasSuffix(s, "]") {
			host, port, err = net.SplitHostPort(s + ":0")
		}
		if err != nil {
			return Target{}, fmt.Errorf("%w: %q is not host:port", ErrBadTarget, cut(s))
		}
	}
	t := Target{Host: host}
	if port != "" && port != "0" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return Target{}, fmt.Errorf("%w: %q: the port is not 1 to 65535", ErrBadTarget, cut(s))
		}
		t.Port = uint16(n)
	}
	return normal(t)
}

// cut bounds a text that is quoted in an error.
func cut(s string) string {
	if len(s) > MaxHost+8 {
		return s[:MaxHost+8] + "..."
	}
	return s
}

// normal returns a target as everybody writes it, or says what is wrong with it.
func normal(t Target) (Target, error) {
	if a, err := netip.ParseAddr(t.Host); err == nil {
		if a.Zone() != "" {
			return t, fmt.Errorf("%w: %q has a zone, which means something on one machine only", ErrBadTarget, cut(t.Host))
		}
		t.Host = a.Unmap().String()
		return t, nil
	}
	t.Host = strings.ToLower(strings.TrimSuffix(t.Host, "."))
	switch {
	case t.Host == "":
		return t, fmt.Errorf("%w: the host is empty", ErrBadTarget)
	case len(t.Host) > MaxHost:
		return t, fmt.Errorf("%w: a host of %d bytes, at most %d", ErrBadTarget, len(t.Host), MaxHost)
	}
	for _, c := range []byte(t.Host) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return t, fmt.Errorf("%w: %q is no host", ErrBadTarget, cut(t.Host))
		}
	}
	return t, nil
}

// Normalize returns targets in the form that Lookup promises: checked, in lower case, sorted, each once. Errors:
// ErrBadTarget, ErrTooManyTargets. The list given is not changed.
func Normalize(list []Target) ([]Target, error) {
	if len(list) > MaxTargets {
		return nil, tooMany(len(list))
	}
	out := make([]Target, 0, len(list))
	for _, t := range list {
		t, err := normal(t)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	slices.SortFunc(out, Target.Compare)
	return slices.Compact(out), nil
}

func tooMany(n int) error {
	return fmt.Errorf("%w: %d, at most %d", ErrTooManyTargets, n, MaxTargets)
}
