// Links: no link of a document is dead, and every page of docs/ is reached from its index.

package rules

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	fencedText = regexp.MustCompile("(?ms)^```.*?^```$")
	quotedCode = regexp.MustCompile("`[^`\n]*`")
	linkTarget = regexp.MustCompile(`\]\(([^()\s]+)\)|(?:src|href)="([^"]+)"`)
	headLine   = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// docIndex is the page from which all others are reached.
const docIndex = "docs/README.md"

// targets returns where a page's links lead, but for those in code and those that leave the repository.
func targets(text string) (found []string) {
	text = quotedCode.ReplaceAllString(fencedText.ReplaceAllString(text, ""), "")
	for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
		if target := m[1] + m[2]; !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
			found = append(found, target)
		}
	}
	return found
}

// anchor returns what a forge calls a heading in an address.
func anchor(heading string) string {
	heading = linkText.ReplaceAllString(strings.TrimSpace(heading), "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// anchors returns the addresses of all headings of a page.
func anchors(text string) (found []string) {
	for _, m := range headLine.FindAllStringSubmatch(fencedText.ReplaceAllString(text, ""), -1) {
		found = append(found, anchor(m[1]))
	}
	return found
}

// deadLinks returns the links of pages, which are named by their path, that lead nowhere; there tells of other files.
func deadLinks(pages map[string]string, there func(name string) bool) (dead []string) {
	for name, text := range pages {
		for _, target := range targets(text) {
			file, part, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			page, known := pages[to]
			if !known && !there(to) {
				dead = append(dead, fmt.Sprintf("%s: %s: there is no such file", name, target))
			} else if part != "" && known && !slices.Contains(anchors(page), part) {
				dead = append(dead, fmt.Sprintf("%s: %s: the page has no such heading", name, target))
			}
		}
	}
	slices.Sort(dead)
	return dead
}

// unreached returns the pages of docs/ to which no path of links leads from the index through pages of docs/.
func unreached(pages map[string]string) (lost []string) {
	seen, next := map[string]bool{docIndex: true}, []string{docIndex}
	for ; len(next) > 0; next = next[1:] {
		for _, target := range targets(pages[next[0]]) {
			file, _, _ := strings.Cut(target, "#")
			to := path.Join(path.Dir(next[0]), file)
			if _, known := pages[to]; known && !seen[to] && strings.HasPrefix(to, "docs/") {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !seen[name] {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return lost
}

// documents returns the text of every document by its path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range strings.Fields("*.md docs/*.md docs/*/*.md examples/*/*.md deploy/*.md deploy/*/*.md") {
		found, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, file := range found {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			name, err := filepath.Rel(repository, file)
			require.NoError(t, err)
			pages[filepath.ToSlash(name)] = string(text)
		}
	}
	require.Greater(t, len(pages), 30)
	return pages
}

// TestLinksOfDocuments holds that no link of a document is dead, heading included (CARD-5).
func TestLinksOfDocuments(t *testing.T) {
	require.Empty(t, deadLinks(documents(t), func(name string) bool {
		_, err := os.Stat(filepath.Join(repository, filepath.FromSlash(name)))
		return err == nil
	}))
}

// TestDocsAreReached holds that a reader finds every page from docs/README.md (CARD-5): a new page gets a line there.
func TestDocsAreReached(t *testing.T) {
	require.Empty(t, unreached(documents(t)), "no link leads from %s to these pages", docIndex)
}

// What the two tests above find.
func TestLinkRules(t *testing.T) {
	pages := map[string]string{
		docIndex:    "[a](a.md#one-two) [up](../README.md) `[no](none.md)`\n```\n[no](none.md)\n```\n",
		"docs/a.md": "# A\n## One, `two`\n[here](#a) [web](https://example.org/x) [gone](gone.md) [part](README.md#x)\n",
		"docs/b.md": "# B\n<img src=\"b.svg\"> [a](a.md#two)\n",
		"README.md": "[b](docs/b.md)\n",
	}
	require.Equal(t, []string{
		"docs/a.md: README.md#x: the page has no such heading",
		"docs/a.md: gone.md: there is no such file",
		"docs/b.md: a.md#two: the page has no such heading",
	}, deadLinks(pages, func(name string) bool { return name == "docs/b.svg" }))
	require.Equal(t, []string{"docs/b.md"}, unreached(pages))
}
