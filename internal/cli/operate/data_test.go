// Tests of what kith data prints (OPS-1).

package operate

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// said is what data prints of answers, by path.
func said(t *testing.T, c Data, answers map[string]string) (string, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, is := answers[q.URL.RequestURI()]
		if !is {
			w.WriteHeader(http.StatusNotFound)
			body = `{"error":"nothing at ` + q.URL.RequestURI() + `"}`
		}
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	c.Admin, c.Timeout = s.URL, time.Minute
	var out bytes.Buffer
	err := c.Run(&Console{Out: &out})
	return out.String(), err
}

func TestDataIsShown(t *testing.T) {
	out, err := said(t, Data{}, map[string]string{"/v1/values": `{"stores":[]}`})
	require.ErrorContains(t, err, "no store of values is open on this node")
	require.Empty(t, out)
	out, err = said(t, Data{}, map[string]string{"/v1/values": `{"stores":[{"store":"carts","disks":3,"keys":7,
		"bytes":900,"lacking":2,"hints":1,"shards":4}]}`})
	require.NoError(t, err)
	require.Equal(t, []string{"carts", "3", "7", "900", "2", "1", "4"}, strings.Fields(strings.Split(out, "\n")[1]))
	_, err = said(t, Data{Store: "a/b"}, nil)
	require.ErrorContains(t, err, "nothing at /v1/values/a%2Fb")

	out, err = said(t, Data{Store: "carts"}, map[string]string{"/v1/values/carts": `{"begun":true,"founders":3,
		"disk":"n1:1#7","mode":"register","n":3,"r":2,"w":2,"groups":64,"waits_s":1.5,
		"filling":[{"group":9,"keys":12,"read":1,"need":2,"from":"n2:1#8"}],
		"disks":[{"disk":"n1:1#7","node":"n1:1#1","here":true,"up":true,"groups":64,"hints":0,"hint_bytes":0},
		{"disk":"n2:1#8","node":"n2:1#2","up":true,"groups":64,"hints":0,"hint_bytes":0},
		{"disk":"n3:1#9","up":false,"away_s":61,"groups":64,"hints":5,"hint_bytes":640}],
		"counts":{"store":"carts","keys":12,"hints":5,"hint_bytes":640,"damaged":1}}`})
	require.NoError(t, err)
	for _, want := range []string{"being filled: 63 of 64 groups are whole", "carts: register, N 3, R 2, W 2", "1.5 s",
		"up, here", "away for 61 s", "1 of 2", "1 damaged entries", "5 writes wait here"} {
		require.Contains(t, out, want)
	}

	out, err = said(t, Data{Store: "carts", Key: "k 1"}, map[string]string{"/v1/values/carts/key?key=k+1": `{"key":"k 1",
		"values":2,"replicas":[{"disk":"n1:1#7","up":true,"answered":true,"hints":0,"versions":[
		{"by":"n1:1#7","number":4,"bytes":5,"hash":"00ff"},{"by":"n2:1#8","number":6,"deleted":true,"hash":"01"}]},
		{"disk":"n2:1#8","up":true,"answered":true,"behind":true,"lacking":true,"versions":[]},
		{"disk":"n3:1#9","up":false,"hints":1,"versions":[]}]}`})
	require.NoError(t, err)
	for _, want := range []string{"whole", "being filled, behind", "away", "n1:1#7/4", "n2:1#8/6, a deletion", "none",
		"values that none replaces: 2"} {
		require.Contains(t, out, want)
	}
}
