// The page of symptoms: each message that docs/troubleshooting.md quotes is one that the source has.

package rules

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quoted is a message in a document: code that is a string, which may go on in the next line.
var quoted = regexp.MustCompile("`\"([^`\"]+)\"`")

// quotes returns the messages that a page quotes, each in one line.
func quotes(page string) (found []string) {
	for _, m := range quoted.FindAllStringSubmatch(page, -1) {
		found = append(found, strings.Join(strings.Fields(m[1]), " "))
	}
	return found
}

// unsaid returns the messages that are part of none of the texts.
func unsaid(messages, texts []string) (none []string) {
	for _, m := range messages {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, m) }) {
			none = append(none, m)
		}
	}
	return none
}

// TestQuotedMessagesExist holds docs/troubleshooting.md against what the node says (CARD-5).
func TestQuotedMessagesExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "troubleshooting.md"))
	require.NoError(t, err)
	messages := quotes(string(page))
	require.Greater(t, len(messages), 40)
	var texts []string
	all, err := sources()
	require.NoError(t, err)
	for _, s := range all {
		if s.tests {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, whole := literal(e)
			if whole {
				texts = append(texts, text)
			}
			return !whole
		})
	}
	require.Greater(t, len(texts), 1000)
	require.Empty(t, unsaid(messages, texts), "docs/troubleshooting.md quotes what no file of the source says")

	require.Equal(t, []string{"a b", "c"}, quotes("`\"a\nb\"`, `\"c\"`, `d` and \"e\""))
	require.Equal(t, []string{"c"}, unsaid([]string{"b", "c"}, []string{"abd"}))
}
