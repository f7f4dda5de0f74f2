// Enum: the words of an enumeration, written and read in one way.

// Package enum reads and writes the values of enumerations as words, so that JSON, logs and settings hold "blocking"
// where the program holds a number.
package enum

import (
	"fmt"
	"strconv"
	"strings"
)

// Values are numbers that have a name.
type Values interface {
	~uint8 | ~uint16
	fmt.Stringer
}

// Name returns names[v], or kind and the number when there is no such name: "mode-7".
func Name[V ~uint8 | ~uint16](names []string, v V, kind string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return kind + "-" + strconv.Itoa(int(v))
}

// Parse sets into to the value with the name text; names of different values differ. A value without a name of its own
// is read back too, so that what a later version wrote is not lost. An error names the word, and into stays as it was.
func Parse[V Values](into *V, text []byte) error {
	word := string(text)
	if at := strings.LastIndexByte(word, '-'); at >= 0 {
		n, err := strconv.ParseUint(word[at+1:], 10, 16)
		if v := V(n); err == nil && uint64(v) == n && v.String() == word {
			*into = v
			return nil
		}
	}
	for n := range 256 {
		if v := V(n); v.String() == word {
			*into = v
			return nil
		}
	}
	return fmt.Errorf("kith: %T has no value %q", *into, word)
}
