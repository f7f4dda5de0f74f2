// Tests of what the verbs print of other clusters of this one's name (JOIN-1, OPS-1).

package operate

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// status and explain say which members vouch for the node (AVL-5).
func TestTenureIsShown(t *testing.T) {
	var m membersAnswer
	require.NoError(t, json.Unmarshal([]byte(`{"tenure":{"held":true,"text":"its tenure is held"}}`), &m))
	var out bytes.Buffer
	orders(&Console{Out: &out}, &healthAnswer{}, &m)
	require.Equal(t, "its tenure is held\n", out.String())
}

// status and explain name another cluster, and another side of this one, by where it lives.
func TestTwinsAreNamed(t *testing.T) {
	var h healthAnswer
	require.NoError(t, json.Unmarshal([]byte(`{"state":"ready","twins":[
		{"cluster":"0b","birth":3,"via":"10.0.0.2:1"},{"cluster":"0a","birth":7,"via":"10.0.0.3:1"}]}`), &h))
	var out bytes.Buffer
	orders(&Console{Out: &out}, &h, &membersAnswer{Cluster: "0a"})
	require.Equal(t, "another cluster of this name, 0b, lives at 10.0.0.2:1: one of the two has to end "+
		"(docs/troubleshooting.md)\nanother side of this cluster, which has removed this one, lives at 10.0.0.3:1: one of "+
		"the two has to end (docs/troubleshooting.md)\n", out.String())
}
