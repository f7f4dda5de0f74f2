// Tests of words of peers as people may see them (SEC-5).

package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What a terminal could obey is escaped, and all on one line; other text is as it was (SEC-5).
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"plain text, größer, 日本 \"q\"": "plain text, größer, 日本 \"q\"",
		"\x1b[2Jgone\r\n\tx":           `\u001b[2Jgone\u000d\u000a\u0009x`,
		"\x7f\u009b31m":                `\u007f\u009b31m`,
		"\x9b31m\xff":                  `\u009b31m\u00ff`,
		"a\u202etxt.exe":               `a\u202etxt.exe`,
		"\u2028\ufeff":                 `\u2028\ufeff`,
		"\U000e0001x":                  `\udb40\udc01x`,
		"\ufffd":                       "\ufffd",
	} {
		require.Equal(t, want, Printable(text), "%q", text)
	}
}

// FuzzPrintable: whatever comes, the result is one line of printable text, and stays as it is the second time.
func FuzzPrintable(f *testing.F) {
	f.Add("\x1b]0;title\a\x9b")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, -1, strings.IndexFunc(got, func(r rune) bool { return !IsPrintable(r, 3) }))
		require.Equal(t, got, Printable(got))
	})
}
