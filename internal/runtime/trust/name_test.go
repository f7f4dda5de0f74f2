// Tests of what a certificate calls its node.

package trust

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
)

// What names a node in its certificate.
func TestNodeName(t *testing.T) {
	ca := authority(t)
	for want, r := range map[string]pki.Request{
		"n1":            {Name: "n1", URIs: []string{"spiffe://x/y"}, Hosts: []string{"h"}},
		"spiffe://x/y":  {URIs: []string{ClusterURI("test"), "spiffe://x/y", "spiffe://x/z"}, Hosts: []string{"h"}},
		"db.example":    {URIs: []string{ClusterURI("test")}, Hosts: []string{"10.0.0.1", "db.example", "other"}},
		"10.0.0.1":      {URIs: []string{ClusterURI("test")}, Hosts: []string{"10.0.0.1", "10.0.0.2"}},
		"":              {URIs: []string{ClusterURI("test")}},
		"kith://node/1": {URIs: []string{"kith://node/1"}},
	} {
		r.Until = time.Now().Add(time.Minute)
		p, err := ca.Issue(r)
		require.NoError(t, err)
		certs, err := pki.Certificates(p.Cert)
		require.NoError(t, err)
		require.Equal(t, want, nodeName(certs[0]))
	}
}
