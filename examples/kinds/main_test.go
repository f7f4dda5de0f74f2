// The program that the quick start shows in parts, run as it is.

package main

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// It prints one line of each kind and leaves by itself.
func TestKinds(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	printed, args := os.Stdout, os.Args
	os.Stdout, os.Args = w, []string{"kinds"}
	defer func() { os.Stdout, os.Args = printed, args }()
	main()
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Regexp(t, `^replicated: 1 nodes were here, I am 127.0.0.1:\d+\ntopic: it is [\d:]+\npool: hello!\n`+
		`partition: both! from instance 0\n$`,
		string(out))
}
