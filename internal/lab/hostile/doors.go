// The attacks at ports with HTTP: connections that say nothing or rest, readers that never stop asking.

package hostile

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Crowd is what clients of one address do at the ports with HTTP of a node, all the time. None of them proves anything.
type Crowd struct {
	Admin, Contact string      // the admin interface and the contact point, host:port
	TLS            *tls.Config // of a client; nil: plain HTTP
	Paths          []string    // that readers of Admin ask for, each in turn
	ContactPath    string      // that readers of Contact ask for
	Readers        int         // connections at each of both that ask
	Streams        int         // requests of one of them at a time, if the server lets it
	Idle           int         // connections to Admin that say nothing, or have asked once
	Silent         int         // connections to Contact that say nothing, or half a request
}

// again is how long after its end a connection is opened anew.
const again = time.Second

// Figures count what came of it.
type Figures struct {
	Asked    atomic.Uint64 // requests that were answered
	Refused  atomic.Uint64 // of them, with 503
	Opened   atomic.Uint64 // connections that were to stand
	HTTP2    atomic.Uint64 // answers over HTTP/2
	Standing atomic.Int64
}

// Run makes the crowd come, and returns when ctx has ended and all are gone.
func (c *Crowd) Run(ctx context.Context, f *Figures) {
	var all sync.WaitGroup
	for n := range c.Idle {
		all.Go(func() {
			c.stand(ctx, f, c.Admin, []string{"", "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"}[n%2])
		})
	}
	for n := range c.Silent {
		all.Go(func() { c.stand(ctx, f, c.Contact, []string{"", "", "GET / HT"}[n%3]) })
	}
	for range c.Readers {
		all.Go(func() { c.read(ctx, f, c.Admin, c.Paths, c.Streams) })
		streams := c.Streams
		if c.TLS != nil { // without a certificate of the cluster no handshake there comes to anything
			streams = 1
		}
		all.Go(func() { c.read(ctx, f, c.Contact, []string{c.ContactPath}, streams) })
	}
	all.Wait()
}

// stand holds a connection for as long as it is let, and opens it anew.
func (c *Crowd) stand(ctx context.Context, f *Figures, at, say string) {
	for {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err == nil {
			f.Opened.Add(1)
			f.Standing.Add(1)
			stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
			_, _ = io.WriteString(nc, say) // over TLS it is no handshake
			_, _ = io.Copy(io.Discard, nc)
			stop()
			_ = nc.Close()
			f.Standing.Add(-1)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// read asks on one connection, so much at a time as it carries.
func (c *Crowd) read(ctx context.Context, f *Figures, at string, paths []string, streams int) {
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	t := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: c.TLS, ForceAttemptHTTP2: true}
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t, Timeout: Patience}
	var all sync.WaitGroup
	for s := range streams {
		all.Go(func() {
			for n := s; ctx.Err() == nil; n++ {
				if !ask(ctx, client, f, scheme+at+paths[n%len(paths)]) {
					select {
					case <-ctx.Done():
					case <-time.After(again):
					}
				}
			}
		})
	}
	all.Wait()
}

// ask sends one request and reports whether it was answered.
func ask(ctx context.Context, client *http.Client, f *Figures, url string) bool {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	a, err := client.Do(q)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	f.Asked.Add(1)
	if a.ProtoMajor == 2 {
		f.HTTP2.Add(1)
	}
	if a.StatusCode == http.StatusServiceUnavailable {
		f.Refused.Add(1)
		return false
	}
	return true
}
