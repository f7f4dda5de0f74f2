// Tests of addresses of leases (MEM-10).

package lease

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What Open hands to a kind is the address as it was given, without the time.
func TestOpenHandsTheAddressOver(t *testing.T) {
	var got Address
	var lasts time.Duration
	other := Kind{Scheme: "etcd", Open: func(_ context.Context, a Address, ttl time.Duration) (Service, error) {
		got, lasts = a, ttl
		return &File{}, nil
	}}
	_, err := Open(context.Background(), "etcd://me@h1:2379,[::1]:2379/a/b?ca=%2Fx&ttl=90s", other)
	require.NoError(t, err)
	require.Equal(t, Address{"etcd", "me@h1:2379,[::1]:2379", "/a/b", url.Values{"ca": {"/x"}}}, got)
	require.Equal(t, 90*time.Second, lasts)
	require.Equal(t, "etcd://me@h1:2379,[::1]:2379/a/b?ca=%2Fx", got.String())
	require.Equal(t, "/x", got.Take("ca"))
	require.NoError(t, got.Rest())
	require.Equal(t, []string{"file", "kubernetes", "etcd"}, Schemes(other))
}

// Each fault of an address is said before any service is asked, and no password is repeated.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for address, want := range map[string]string{
		"":                               "begins with its kind",
		"/run/leases":                    "begins with its kind",
		"etcd://h:2379":                  `kept in "etcd" by this program; it knows file, kubernetes`,
		"file://run/leases":              "three slashes",
		"file://" + dir + "?ttl=1":       `ttl is "1"`,
		"file://" + dir + "?ttl=-1s":     `ttl is "-1s"`,
		"file://" + dir + "?ttl=1ms":     "must be 1s to 24h",
		"file://" + dir + "?a=b&c":       "file has no setting a, c",
		"file://" + dir + "?%zz":         "cannot be read",
		"file:leases":                    "no absolute path",
		"postgres://a:secret@h/d":        "a password",
		"postgres://h/d?password=secret": "a password",
		"kubernetes://shop/x?account=" + dir + "&api-server=https://h": "names a namespace",
		"kubernetes://shop?api-server=http://h":                        "no https URL",
		"kubernetes://shop?api-server=https://h&verify=no":             "kubernetes has no setting verify",
	} {
		s, err := Open(context.Background(), address)
		require.Nil(t, s, address)
		require.ErrorIs(t, err, ErrBadConfig, address)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "secret", address)
	}
	s, err := Open(context.Background(), "file://"+dir)
	require.NoError(t, err)
	require.Equal(t, DefaultTTL, s.TTL())
	require.NoError(t, s.Close())
}
