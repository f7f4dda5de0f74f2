// Printable: words of peers as people may see them.

package wire

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// IsPrintable reports whether a rune that took n bytes may be shown as it is: no control, no format character, which
// could turn the order of the text around, and no byte that is no UTF-8.
func IsPrintable(r rune, n int) bool { return unicode.IsPrint(r) && (r != utf8.RuneError || n != 1) }

// AppendEscaped appends a rune as JSON would write it; b is its first byte, which stands for it when it is no rune.
func AppendEscaped(dst []byte, r rune, b byte) []byte {
	if r == utf8.RuneError {
		r = rune(b)
	}
	if r > 0xffff {
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// Printable returns s with everything escaped that is not printable, newlines too: one line, and no order to a
// terminal. Text that needs none of it comes back as it is.
func Printable(s string) string {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !IsPrintable(r, n) {
			return escaped(s, i)
		}
		i += n
	}
	return s
}

func escaped(s string, from int) string {
	out := append(make([]byte, 0, len(s)+16), s[:from]...)
	for i := from; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if IsPrintable(r, n) {
			out = append(out, s[i:i+n]...)
		} else {
			out = AppendEscaped(out, r, s[i])
		}
		i += n
	}
	return string(out)
}
